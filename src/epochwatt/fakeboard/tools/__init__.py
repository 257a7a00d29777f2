"""Stand-ins for a board's own programs; each runs by itself on any Python from 3.6."""
