# What no other machine and strategy beats in time, cost and memory.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --gpus 8 --cluster dgx-a100 --cluster dgx-h100 --pareto
stdout time, cost and memory
stdout dgx-h100 +8 .*GiB
