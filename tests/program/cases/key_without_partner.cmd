# Keys that mean nothing without another one are refused, not passed over.
$ ! orrery simulate small.yaml --set strategy.tensor_depth=2
$ ! orrery simulate small.yaml --set 'strategy.recompute=[moe]'
$ ! orrery simulate small.yaml --set 'strategy.recompute=[mla_up_proj]'
$ ! orrery simulate small.yaml --set strategy.overlap.expert=true
$ ! orrery simulate small.yaml --set strategy.offload.activations.layers=1
$ ! orrery simulate small.yaml --set strategy.overlap.micro_batches=true --set strategy.schedule=gpipe
$ ! orrery simulate small.yaml --set software.post_update_validation=true --set strategy.sharding=zero1
stderr tensor_depth: .* set tensor_kind: 2\.5d
stderr there are no experts to run again; leave moe and moe_activation out
stderr a model without latent attention: there is no such product; leave mla_up_proj out
stderr there are no shared experts to compute meanwhile; leave it out
stderr give a device: cpu
stderr a schedule other than interleaved, or 1f1b without a pipeline
stderr software\.post_update_validation: .*with shards of the states
no-stdout .
