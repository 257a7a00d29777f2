"""What others measured and published, held against this project's parsers, laws and simulation."""
