$ orrery simulate small.yaml --trace trace.json > table
$ cat trace.json
stdout traceEvents
stdout "ph": *"X"
