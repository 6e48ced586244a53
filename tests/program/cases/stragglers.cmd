# A slow rank: the others wait for it.
$ orrery simulate small.yaml --set 'cluster.stragglers=[{rank: 3, slowdown: 3}]' --set 'software={profile: megatron-core, cuda_graphs: true}'
stdout ^ +imbalance
stdout other replicas
