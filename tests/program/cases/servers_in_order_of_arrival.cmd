# Workers at their own pace: how old weights are, and how far one may run ahead of a straggler.
$ orrery simulate small.yaml --set strategy.pipeline=1 --set strategy.tensor=1 --set strategy.data=8 --set strategy.clip=0 --set strategy.sharding=parameter-server --set 'strategy.parameter_server={servers: 8, mode: ssp, staleness: 2}' --set 'cluster.stragglers=[{rank: 3, slowdown: 3}]'
stdout updates of other workers old on average
stdout a worker began a step at most [012] ahead of the slowest
