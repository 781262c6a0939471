"""Section 4.1, "Datasets": files on disk -> Example -> Batch."""
