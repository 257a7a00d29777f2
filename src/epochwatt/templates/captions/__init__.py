"""Captions of studies' figures; a rule that imports this follows their text."""

FOLDER = "captions"
