# A pipe can be read once.
$ cat small.yaml | orrery search /dev/stdin --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1
stdout limited by
