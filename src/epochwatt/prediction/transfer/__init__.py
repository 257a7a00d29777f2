"""Judge how methods transfer to a new workload, and what their choices under power limits cost."""
