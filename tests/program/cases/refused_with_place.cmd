# What only the planner can refuse is said with the line that asks for it.
$ sed 's/^strategy: .*/strategy: {pipeline: 2, schedule: bpipe}/; s/^strategy:$/strategy:\n  schedule: bpipe/' small.yaml >bpipe.yaml
$ ! orrery simulate bpipe.yaml
$ ! orrery simulate small.yaml --set 'strategy.schedule={}'
stderr bpipe\.yaml:[0-9]+: strategy\.schedule: 'bpipe' is not built yet
stderr strategy\.schedule: a name, or
no-stdout .
