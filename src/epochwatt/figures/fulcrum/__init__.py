"""Figures of the study of schedules (config/schedule.yaml)."""
