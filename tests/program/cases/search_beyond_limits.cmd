# One machine over the limit: why.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --tokens 1e15 --deadline 3
exit 1
stdout no machine is within the limits; the first: [0-9.]+ days, above --deadline 3
