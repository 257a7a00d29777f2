"""Board side: measure training epochs (Python 3.6 grammar, torch >= 1.8)."""
