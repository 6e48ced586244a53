$ orrery search small.yaml --against strategy.sharding=zero3
stdout the given strategy
