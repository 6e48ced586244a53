# What each pass waits for, and the least time that the memory allows.
$ echo '{model: llama-3.1-8b, workload: generate, generate: {batch: 8, input: 512, output: 64}, cluster: {node: dgx-h100, nodes: 1}, gpus: 1}' > text.yaml
$ orrery explain text.yaml
stdout What limits each pass
stdout weights .* at 3,350 GB/s
stdout bytes a token over all stages: 2 L max
$ echo '{model: glm-5, workload: generate, generate: {batch: 8, input: 512, output: 64}, cluster: {node: dgx-h200, nodes: 2}, gpus: 16, strategy: {tensor: 8, pipeline: 2}}' > index.yaml
$ orrery explain index.yaml
stdout 100,152 bytes a token over all stages: .* = 78 x \(512 \+ 64\) x 2, and 78 x 132 for the index's keys
