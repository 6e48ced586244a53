# Micro-batches of 1 and 5 alone divide a batch of 40 over 8 ranks: no halving among the others.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --set strategy.micro_batch=null --set strategy.tensor=1 --set strategy.pipeline=1 --set strategy.data=8 --set strategy.global_batch=40 --maximize micro_batch
stdout largest micro_batch that fits: 5$
