# A trace that is cut short is one line with file and line.
$ printf '{"traceEvents": [\n{"ph": "X", "cat": "ker' >trace.json
$ orrery trace summarize trace.json
exit 2
stderr trace\.json:2: the file is cut short
no-stdout .
