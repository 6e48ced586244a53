$ orrery compare small.yaml --vary strategy.sharding=none,zero1,zero2,zero3
stdout none
stdout zero1
stdout zero2
stdout zero3
