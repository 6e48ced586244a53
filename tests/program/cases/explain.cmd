# Every value, with where it came from.
$ orrery explain small.yaml --set strategy.clip=0.5
stdout Nearest validated rows
stdout strategy\.tensor.*small\.yaml:8
stdout strategy\.clip.*0\.5.*--set
stdout strategy\.precision.*bf16
stdout strategy\.optimizer.*default
