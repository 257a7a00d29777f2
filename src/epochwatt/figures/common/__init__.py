"""Jobs, runs, published marks and drawing parts that all figures share."""
