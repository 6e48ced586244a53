$ orrery simulate small.yaml --set strategy.sharding=zero4
exit 2
stderr zero4.*zero3
