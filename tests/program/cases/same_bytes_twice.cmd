$ orrery simulate small.yaml --json --threads 1 --trace a.json | sed -E 's/"wall_s": *[-+.0-9eE]+//' > a
$ orrery simulate small.yaml --json --threads 2 --trace b.json | sed -E 's/"wall_s": *[-+.0-9eE]+//' > b
$ test -s a; cmp a b; cmp a.json b.json
