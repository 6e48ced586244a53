$ sed 's/tensor:/tp:/; s/pipeline:/pp:/; s/data:/dp:/' small.yaml > short.yaml
$ orrery simulate small.yaml --json | sed -E 's/"wall_s": *[-+.0-9eE]+//' > a
$ orrery simulate short.yaml --json | sed -E 's/"wall_s": *[-+.0-9eE]+//' > b
$ test -s a; cmp a b
