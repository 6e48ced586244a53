# What a search of training steps alone can do is said.
$ echo '{model: llama-3.1-8b, workload: generate, generate: {batch: 8, input: 512, output: 64}, cluster: {node: dgx-h100, nodes: 1}, gpus: 1}' > text.yaml
$ orrery search text.yaml --maximize micro_batch
exit 2
stderr --maximize: goes with training steps
no-stdout .
