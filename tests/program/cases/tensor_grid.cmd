# Tensor ranks in a grid: volumes by formula, the deepest layers by themselves, what does not divide refused.
$ orrery explain small.yaml --set strategy.tensor_kind=2d --set strategy.tensor=4 --set strategy.pipeline=1 --set strategy.micro_batch=2
$ orrery simulate small.yaml --set strategy.tensor_kind=2.5d --set strategy.tensor=8 --set strategy.pipeline=1 --set strategy.data=1 --set strategy.micro_batch=4
$ orrery simulate small.yaml --set strategy.tensor_kind=3d --set strategy.tensor=8 --set strategy.pipeline=1 --set strategy.data=1 --set strategy.micro_batch=4
$ ! orrery simulate small.yaml --set strategy.tensor_kind=2d --set strategy.tensor=4 --set strategy.pipeline=1
$ ! orrery simulate small.yaml --set strategy.tensor_kind=3d --set strategy.pipeline=1 --set strategy.data=4
$ ! orrery search small.yaml --set strategy.tensor_kind=2d --set strategy.tensor=4 --set strategy.pipeline=1 --set strategy.micro_batch=2
stdout tensor \(2d\) +\(3\(X \+ W\)·L \+ 5T \+ 3Y\)·q·m/p
stdout 2d tensor 4
stdout 2\.5d tensor 8
stdout tensor-column +broadcast
stdout tensor-depth +all_gather
stderr micro_batch: 1 is not a multiple of 2
stderr tensor: 2 makes no 3d grid
stderr strategy\.tensor_kind: .* search has no bounds for it yet
