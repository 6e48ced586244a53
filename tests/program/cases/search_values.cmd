$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --set search.tensor=1.5
exit 2
stderr search.tensor: '1.5' is not a whole number
