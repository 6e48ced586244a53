# Several --vary: every combination, the last one changing fastest.
$ orrery compare small.yaml --vary strategy.micro_batch=1,2 --vary strategy.sharding=none,zero1 --json
stdout "name": "small micro_batch=1 sharding=none"
stdout "name": "small micro_batch=2 sharding=zero1"
