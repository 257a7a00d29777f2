"""`epochwatt what-if`: answer one question about a simulated board."""
