# SIGINT ends a search with the best so far, and how far that may be from the optimum.
$ timeout --preserve-status -s INT 8 orrery search small.yaml --gpus 16
exit 1
stdout interrupted: the best so far, not proven; no strategy can be more than [0-9.]+ % better
stdout limited by
