$ for n in 1 2 5; do orrery search small.yaml --json --threads $n > $n; done
$ test -s 1; cmp 1 2; cmp 1 5
