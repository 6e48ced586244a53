# All layouts of a node are compared, by tokens a second and GPU or by a token's time.
$ echo '{model: llama-3.1-8b, workload: generate, generate: {batch: 8, input: 512, output: 64}, cluster: {node: dgx-h100, nodes: 1}, gpus: 2}' > text.yaml
$ orrery search text.yaml
$ orrery search text.yaml --objective tpot --save best.yaml
$ orrery simulate best.yaml
stdout the best by throughput of all layouts with the stated batch
stdout the best by tpot of all layouts with the stated batch
stdout llama-3.1-8b generates 8 x 64 tokens
