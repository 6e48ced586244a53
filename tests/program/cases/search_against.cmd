# The given strategy is judged on the machine that was searched, as simulate judges it there.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --cluster dgx-h100 --gpus 16 --set strategy.data=4 --against strategy.sharding=zero3 | tee out
$ orrery simulate small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set 'cluster={node: dgx-h100, nodes: 2}' --set gpus=16 --set strategy.data=4 --set strategy.sharding=zero3 > again
$ step=$(awk '/step time/ {print $3 " " $4}' again); grep -q "the given strategy: $step, +" out
stdout the given strategy: .* ms, \+[0-9.]+ %, .* GiB; .* more
