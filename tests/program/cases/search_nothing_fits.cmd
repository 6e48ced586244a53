$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --max-memory 0.1
exit 1
stdout nothing fits: the leanest strategy needs at least
