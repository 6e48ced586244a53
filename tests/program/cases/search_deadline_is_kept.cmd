# A machine that takes too long has its row, and the reason why it is not chosen.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --set strategy.data=null --gpus 4,32 --tokens 1G --deadline '3 h'
stdout dgx-a100 +32 
stdout dgx-a100 +4 
stdout 4 x dgx-a100: [0-9.]+ days, above --deadline
stdout on 32 x NVIDIA A100
