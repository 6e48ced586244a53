# A machine that takes too long is named, not shown.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --set strategy.data=null --gpus 4,32 --tokens 1G --deadline '3 h'
stdout dgx-a100 +32 
no-stdout dgx-a100 +4 
stdout 4 x dgx-a100: [0-9.]+ days, above --deadline
