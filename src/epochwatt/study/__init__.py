"""Configuration, run table and plan: what is to be run."""
