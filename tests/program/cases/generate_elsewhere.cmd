# What predicts training alone says so.
$ echo '{model: llama-3.1-8b, workload: generate, generate: {batch: 8, input: 512, output: 64}, cluster: {node: dgx-h100, nodes: 1}, gpus: 1}' > text.yaml
$ orrery compare text.yaml --vary strategy.precision=bf16,fp8
exit 2
stderr text\.yaml: workload: generate is predicted by `orrery simulate` alone so far
no-stdout .
