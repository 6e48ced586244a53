# Model states, volumes and the bubble, each by formula and as simulated.
$ orrery explain small.yaml --set strategy.sharding=zero1
stdout 6Ψ \+ 12Ψ/N
stdout ^ +data .*\(Ψ·g \+ Ψ·w\)\(N-1\)/N
stdout ^ +tensor .*S·m·\(L/p\)
stdout \(p-1\)/\(m\+p-1\) = 11\.1 %
stdout critical path
