# What a cluster's own tools print becomes the cluster of a spec, or the network that a spec names.
$ printf 'SwitchName=s0 Nodes=n[0-3]\nSwitchName=s1 Nodes=n[4-7]\n' > topology.conf
$ orrery import-topology topology.conf
$ orrery import-topology topology.conf --out fabric.yaml
$ orrery simulate small.yaml --set cluster.nodes=8 --set cluster.network='{file: fabric.yaml, routing: {kind: ecmp}}'
stdout ^  nodes: 8
stdout leaf: \{nodes: 4\}
stdout fabric.yaml is written
stdout step time
