"""Requests whose rate changes, and a board that is planned anew for it."""
