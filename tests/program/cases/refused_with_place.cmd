# Features that do not go together are refused with the line that asks for one.
$ sed 's/^  tensor: 2/  tensor: 4\n  tensor_kind: 2d/; s/^  data: 2/  data: 1/; s/^  micro_batch: 1/  micro_batch: 2/; s/^strategy:$/strategy:\n  schedule: vocab-1f1b/' small.yaml >vocab.yaml
$ ! orrery simulate vocab.yaml
$ ! orrery simulate small.yaml --set 'strategy.schedule={}'
stderr vocab\.yaml:[0-9]+: strategy\.tensor_kind: a grid of tensor ranks \(2d, 2\.5d, 3d\) with a vocabulary that all stages share: not built yet; choose 1d
stderr strategy\.schedule: a name, or
no-stdout .
