# A run of days: what failures and checkpoints leave of it.
$ orrery run-length small.yaml --days 20 --plays 200 --set cluster.failures.node_mtbf_hours=50
$ orrery run-length small.yaml --days 20 --plays 200 --json
stdout useful time
stdout faulty GPU
stdout "schema": "orrery.run_length/1"
