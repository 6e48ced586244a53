# What only the planner can refuse is said with the line that asks for it.
$ sed 's/^  tensor: 2/  tensor: 4\n  tensor_kind: 2d/; s/^  data: 2/  data: 1/; s/^  micro_batch: 1/  micro_batch: 2/; s/^strategy:$/strategy:\n  schedule: vocab-1f1b/' small.yaml >vocab.yaml
$ ! orrery simulate vocab.yaml
$ ! orrery simulate small.yaml --set 'strategy.schedule={}'
stderr vocab\.yaml:[0-9]+: strategy\.tensor_kind: vocab-1f1b lets all stages share the vocabulary; not built yet with grids of tensor ranks: choose 1d
stderr strategy\.schedule: a name, or
no-stdout .
