"""Figures of HiPCW 2021."""
