# Another node keeps the failures that the spec states.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --set 'cluster.failures={node_mtbf_hours: 10, restart_s: 600}' --cluster dgx-h100 --tokens 1e9
stdout dgx-h100 +8 .* 10\.0 
no-stdout <=
