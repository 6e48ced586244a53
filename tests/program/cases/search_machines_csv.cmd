$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --cluster dgx-a100 --tokens 1e9 --csv
stdout machine,gpus,strategy
stdout dgx-a100,8,
