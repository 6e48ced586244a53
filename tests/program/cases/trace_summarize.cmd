# A trace of our own is summed up; a damaged one is one line with file and line.
$ orrery simulate small.yaml --trace trace.json.gz > table
$ orrery trace summarize trace.json.gz
$ orrery trace summarize trace.json.gz --json
stdout stage 1 \(ranks
stdout 100.0 % of kernels tied
stdout class of kernels
stdout "schema": "orrery.trace_summary/1"
