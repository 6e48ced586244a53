# A scheduler that ends a job sends SIGTERM, and some send it to the process and to its group: the best so far, as
# after Ctrl-C. It comes after three seconds
# of processor time, when a busy machine has a best too.
$ set -m
$ orrery search small.yaml --gpus 16 &
$ used() { awk '{ print $14 + $15 }' /proc/$1/stat 2>/dev/null || echo 1000; }
$ while (( $(used $!) < 3 * $(getconf CLK_TCK) )); do sleep 0.1; done
$ kill -TERM $! $!
$ wait $!
exit 1
stdout interrupted: the best so far, not proven; no strategy can be more than [0-9.]+ % better
stdout limited by
