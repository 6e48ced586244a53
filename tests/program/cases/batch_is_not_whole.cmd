$ orrery simulate small.yaml --set strategy.global_batch=15
exit 2
stderr global_batch
