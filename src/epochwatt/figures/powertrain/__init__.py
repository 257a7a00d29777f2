"""Figures of our study of PowerTrain (FGCS 2024); simulated and public sweeps never share one."""
