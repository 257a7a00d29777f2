"""Write and read the files of measured epochs (board side: Python 3.6)."""
