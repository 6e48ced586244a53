# Keys that mean nothing without another one are refused, not passed over.
$ ! orrery simulate small.yaml --set strategy.tensor_depth=2
$ ! orrery simulate small.yaml --set 'strategy.recompute=[moe]'
$ ! orrery simulate small.yaml --set 'strategy.recompute=[mla_up_proj]'
$ ! orrery simulate small.yaml --set strategy.overlap.expert=true
$ ! orrery simulate small.yaml --set strategy.offload.activations.layers=1
$ ! orrery simulate small.yaml --set strategy.overlap.micro_batches=true --set strategy.schedule=gpipe
$ ! orrery simulate small.yaml --set software.validates_after_update=true --set strategy.sharding=zero1
stderr tensor_depth: 2 needs tensor_kind: 2\.5d
stderr has no experts to run again; leave moe and moe_activation out
stderr has no latent attention; leave mla_up_proj out
stderr needs shared experts to compute meanwhile; leave it out
stderr needs a device
stderr weaves the orders of schedule interleaved
stderr needs strategy\.sharding none
no-stdout .
