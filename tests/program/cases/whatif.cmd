# Rows of two ranks, one of them slow: the replay is as long as the run, and the slow rank is found.
$ printf 'rank,step,op,start_us,duration_us\n' > log.csv
$ printf '0,0,forward-compute,0,100\n0,0,grads-all-reduce,100,110\n' >> log.csv
$ printf '1,0,forward-compute,0,200\n1,0,grads-all-reduce,200,10\n' >> log.csv
$ orrery whatif log.csv
$ orrery whatif log.csv --without rank=1 --speed network=2 --json
$ orrery simulate small.yaml --trace trace.json > table
$ orrery whatif trace.json
stdout measured +210.0 +one step
stdout replayed +210.0 +0.00 % off
stdout 1 +\+31.2
stdout "schema": "orrery.whatif/1"
stdout "step_time_s": 0.00015[45]
