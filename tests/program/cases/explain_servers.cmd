# What workers send to parameter servers and get from them, and what each kind of rank holds.
$ orrery explain small.yaml --set strategy.pipeline=1 --set strategy.tensor=1 --set strategy.data=8 --set strategy.sharding=parameter-server --set 'strategy.parameter_server={servers: 4, snapshot_every: 100}'
stdout ^ +servers .*Ψ·g \+ Ψ·w per worker, W/S of it through a server
stdout ^ +stage 0, workers .*\+ 0·
stdout ^ +stage 0, servers .*/4
stdout every 100 steps each server writes .* GB \(14Ψ/S\)
