# The tolerance is part of what is proven.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --within 5
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --within 5 --json | grep '"gap"'
stdout proven within 5 %
stdout "gap": 0.0(5|49+|50+)
no-stdout the best is proven
