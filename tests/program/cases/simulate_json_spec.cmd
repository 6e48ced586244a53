# JSON is YAML too.
$ echo '{"model": "gpt2", "sequence": 1024, "cluster": {"node": "dgx-a100", "nodes": 1}}' > small.json
$ orrery simulate small.json --json
stdout "fits": *true
