"""What to run: configuration, run table, plan."""
