$ for n in 1 2 5; do orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --json --threads $n > $n; done
$ test -s 1; cmp 1 2; cmp 1 5
