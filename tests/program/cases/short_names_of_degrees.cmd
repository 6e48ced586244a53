$ mkdir short; sed 's/tensor:/tp:/; s/pipeline:/pp:/; s/data:/dp:/' small.yaml > short/small.yaml
$ orrery simulate small.yaml --json | sed -E 's/"wall_s": *[-+.0-9eE]+//' > a
$ cd short; orrery simulate small.yaml --json | sed -E 's/"wall_s": *[-+.0-9eE]+//' > ../b
$ cd ..; test -s a; cmp a b
