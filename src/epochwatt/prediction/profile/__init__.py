"""`epochwatt profile`: the best power mode within a limit, found by running modes one by one."""
