$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --maximize layers --pareto
exit 2
stderr --maximize: .*--pareto
