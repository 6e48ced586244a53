# What chains of servers move more than servers alone, and what they are worth.
$ orrery explain small.yaml --set strategy.pipeline=1 --set strategy.tensor=1 --set strategy.data=8 --set strategy.clip=0 --set strategy.sharding=parameter-server --set 'strategy.parameter_server={servers: 4, replicas: 2}'
stdout ^ +servers .*\(\(W\+R-1\)·g \+ W·w\)/S through a server's machine
stdout 4 parameter servers, sync
stdout chains of 2 servers
stdout ^ +without them: 
