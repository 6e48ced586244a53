# What only the planner can refuse is said with the line that asks for it.
$ sed 's/^strategy: .*/strategy: {pipeline: 2, tensor: 2, schedule: vocab-1f1b}/; s/^strategy:$/strategy:\n  schedule: vocab-1f1b/' small.yaml >vocab.yaml
$ ! orrery simulate vocab.yaml
$ ! orrery simulate small.yaml --set 'strategy.schedule={}'
stderr vocab\.yaml:[0-9]+: strategy\.schedule: 'vocab-1f1b' is not built yet
stderr strategy\.schedule: a name, or
no-stdout .
