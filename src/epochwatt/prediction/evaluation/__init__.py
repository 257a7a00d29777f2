"""Fit the models, predict with them, score them."""
