"""`epochwatt recommend`: the best power mode within budgets."""
