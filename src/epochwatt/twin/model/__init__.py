"""The equations of a simulated board: one epoch in closed form."""
