"""Choose which power modes to profile."""
