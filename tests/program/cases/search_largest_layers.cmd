# The model starts at as many layers as a pipeline of four needs.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --set strategy.pipeline=4 --set strategy.data=1 --max-memory 3 --maximize layers
stdout largest layers that fits: [0-9]+
stdout to repeat it: orrery simulate SPEC .*model.layers=
