# Several machines: what a run takes and costs on each, with failures.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --cluster dgx-a100 --cluster dgx-h100 --tokens 1e9
stdout dgx-a100
stdout dgx-h100
stdout goodput
stdout prices of
