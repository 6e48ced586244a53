# A scheduler that ends a job sends SIGTERM: the best so far, as after Ctrl-C.
$ timeout --preserve-status -s TERM 8 orrery search small.yaml --gpus 16
exit 1
stdout interrupted: the best so far, not proven; no strategy can be more than [0-9.]+ % better
stdout limited by
