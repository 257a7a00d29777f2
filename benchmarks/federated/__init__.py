"""A real fleet on one machine: SuperNodes of Flower as boards, slowed by quotas of CPU time."""
