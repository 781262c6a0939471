"""What `sentence-state` does: each command is a file, flags and printing are files beside them."""
