"""Work on the checkout: fingerprints of code, report, reference pages, set-up of a board."""
