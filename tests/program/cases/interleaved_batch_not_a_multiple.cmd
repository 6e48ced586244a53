# 3 micro-batches over 2 stages; later profiles allow it.
$ orrery simulate small.yaml --set software=megatron-lm-2021 --set strategy.virtual_stages=2 --set strategy.global_batch=6
exit 2
stderr pipeline
