"""Rooflines of time and energy: what a power mode could do at best, and what holds a run back."""
