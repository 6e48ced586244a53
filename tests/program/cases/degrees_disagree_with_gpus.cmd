$ orrery simulate small.yaml --set strategy.data=3
exit 2
stderr gpus|data
