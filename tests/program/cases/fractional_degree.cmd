$ orrery simulate small.yaml --set strategy.tensor=1.5
exit 2
stderr tensor
