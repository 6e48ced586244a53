# A row of every number of GPUs, but of those above --max-gpus.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --set strategy.data=null --gpus 4,8,16,32 --max-gpus 16
stdout dgx-a100 +4 
stdout dgx-a100 +8 
stdout dgx-a100 +16 
no-stdout dgx-a100 +32 
