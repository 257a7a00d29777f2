"""What the instrument and the workflow cost, against the project's budgets (README.md here)."""
