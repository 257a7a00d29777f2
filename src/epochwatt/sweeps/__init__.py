"""Mode tables: time and power of a workload in each mode of a device, whoever measured them."""
