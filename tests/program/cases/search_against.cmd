$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --against strategy.sharding=zero3
stdout the given strategy
