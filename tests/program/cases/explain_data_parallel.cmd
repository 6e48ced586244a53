# The baseline that nobody should use: rank 0 holds the optimizer and everybody's outputs.
$ orrery explain small.yaml --set strategy.pipeline=1 --set strategy.tensor=1 --set strategy.data=8 --set strategy.sharding=data-parallel
stdout ^ +data .*Ψ·w \+ Ψ·g \+ m·R·\(8 \+ 2V·w\)\(N-1\)/N
stdout ^ +stage 0, master .*12·
stdout ^ +stage 0, replicas .*\+ 0·
