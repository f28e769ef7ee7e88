"""`make bench-restore`: the limit of this machine, our engine and its peers, on the same bytes and in one run."""
