# Ranks drawn by the seed; the share must be one.
$ orrery simulate small.yaml --set 'cluster.stragglers={share: 1.5, slowdown: 3}'
exit 2
stderr cluster.stragglers.share: 1.5 is above 1
