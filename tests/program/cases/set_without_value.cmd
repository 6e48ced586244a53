$ orrery simulate small.yaml --set strategy.tensor
exit 2
stderr strategy\.tensor
