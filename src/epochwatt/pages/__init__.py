"""Pages of the report: what other layers found, for people."""
