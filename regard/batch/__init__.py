"""Translation of files too large for one run: in shards, by any number of processes and machines."""
