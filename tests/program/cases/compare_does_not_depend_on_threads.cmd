$ for n in 1 2 5; do orrery compare small.yaml --vary strategy.micro_batch=1,2,4,8 --json --threads $n | sed '/wall_s/d' > $n; done
$ test -s 1; cmp 1 2; cmp 1 5
