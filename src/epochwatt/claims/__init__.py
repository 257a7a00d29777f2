"""The papers' take-aways as predicates, and what a table of epochs says about each."""
