$ orrery compare small.yaml --vary strategy.sharing=none,zero1
exit 2
stderr sharing.*sharding
