$ orrery simulate small.yaml --set strategy.micro_batch=many
exit 2
stderr micro_batch
