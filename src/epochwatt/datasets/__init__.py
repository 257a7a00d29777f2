"""Make data sets in their true on-disk formats, with recipe and manifest."""
