# One table has one kind of figures.
$ echo '{model: llama-3.1-8b, workload: generate, generate: {batch: 8, input: 512, output: 64}, cluster: {node: dgx-h100, nodes: 1}, gpus: 1}' > text.yaml
$ orrery compare text.yaml small.yaml
exit 2
stderr small: trains, and others generate text
no-stdout .
