$ orrery simulate small.yaml --set strategy.pipeline=-2
exit 2
stderr pipeline
