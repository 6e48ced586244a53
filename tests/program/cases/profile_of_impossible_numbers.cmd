# A tile of no rows ended the program by a signal.
$ echo '{"gemm": {"tiles": [{"rows": 0, "columns": 128, "efficiency": 0.8}]}, "memory": {}, "attention": {}}' > p.json
$ orrery simulate small.yaml --profile p.json
exit 2
stderr p\.json: gemm\.tiles\[0\]\.rows: 0 is not between 1 and 65536
