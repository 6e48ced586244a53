# What has no place in a table is refused and not left out.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --csv --pareto
exit 2
stderr --csv: .*--pareto
