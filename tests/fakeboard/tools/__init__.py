"""Stand-ins for the programs of a board: `main(root, words)` of each does what they do."""
