"""Jobs that run by the dozen: a process that has imported what they need forks for each of them."""
