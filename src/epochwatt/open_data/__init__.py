"""Open packages of tables: made, checked and read (Frictionless Table Schema, Croissant)."""
