"""The files of measured epochs: the only writer and reader of them (board side: Python 3.6)."""
