$ orrery compare small.yaml --vary strategy.sharding
exit 2
stderr --vary.*strategy\.sharding
