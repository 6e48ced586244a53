# SIGINT leaves neither a trace nor a part of one, and prints nothing.
$ mkdir out; status=0
$ timeout --preserve-status -s INT 0.3 orrery simulate small.yaml --set strategy.global_batch=32768 --trace out/trace.json || status=$?
$ ls -A out; exit $status
exit 130
no-stdout .
