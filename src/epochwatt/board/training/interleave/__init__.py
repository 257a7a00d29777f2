"""Train in the gaps that a stream of requests leaves (board side: Python 3.6 grammar)."""
