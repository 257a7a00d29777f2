"""Import of the logs that the scripts of SIGMETRICS 2023 left (`epochwatt import-2023`)."""
