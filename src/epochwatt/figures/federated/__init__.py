"""Figures of the study of federated rounds (config/federated.yaml)."""
