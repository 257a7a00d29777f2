"""PowerTrain (FGCS 2024): networks of time and power, transferred from a reference workload."""
