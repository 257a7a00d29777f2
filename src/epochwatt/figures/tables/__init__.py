"""Tables of SIGMETRICS 2023 and of the predictions, as CSV files and pages."""
