$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --tokens 1e15 --budget 10
exit 1
stdout \$ of rent, above --budget 10
