$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --maximize micro_batch
stdout largest micro_batch that fits: 8
