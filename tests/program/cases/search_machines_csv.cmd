$ orrery search small.yaml --cluster dgx-a100 --tokens 1e9 --csv
stdout machine,gpus,strategy
stdout dgx-a100,8,
