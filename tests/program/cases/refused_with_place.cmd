# What only the planner can refuse is said with the line that asks for it.
$ sed 's/^strategy: .*/strategy: {pipeline: 2, tensor: 2, schedule: vocab-1f1b}/; s/^strategy:$/strategy:\n  schedule: vocab-1f1b/' small.yaml >vocab.yaml
$ ! orrery simulate vocab.yaml
$ ! orrery simulate small.yaml --set 'strategy.schedule={}'
stderr vocab\.yaml:[0-9]+: strategy\.tensor: vocab-1f1b lets all stages share the vocabulary; not built yet with tensor parallelism: choose 1
stderr strategy\.schedule: a name, or
no-stdout .
