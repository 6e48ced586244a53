# The spec of a cluster: not 512 processes without a word.
$ orrery run small.yaml --set gpus=512 --set strategy='{global_batch: 512}' --set cluster='{node: dgx-h100, nodes: 64}'
exit 2
stderr ^orrery: small.yaml: gpus: 512 ranks for [0-9]+ cores of this machine; give --ranks 512
