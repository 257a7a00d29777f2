"""Answer whether a training fits into a device's memory, how long it takes and what to change."""
