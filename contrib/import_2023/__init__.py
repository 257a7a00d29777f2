"""Import of the logs that the scripts of SIGMETRICS 2023 left (docs/how-to/import-2023.md)."""
