$ orrery explain small.yaml --set strategy.schedule=none
exit 2
stderr 1f1b
