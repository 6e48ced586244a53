$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --deadline 3
exit 2
stderr --tokens
