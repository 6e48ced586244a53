$ orrery search small.yaml --set strategy.schedule=zb-v
exit 2
stderr --set: strategy.schedule: search does not know zb-v yet
