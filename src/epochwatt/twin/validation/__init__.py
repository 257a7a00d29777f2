"""Refit without some of the numbers and predict those: how far to trust a simulation."""
