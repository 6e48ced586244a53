$ orrery simulate small.yaml --set strategy.tensr=2
exit 2
stderr --set.*tensr.*tensor
