# Specs that generate text have a row each: times of the first and each further token, rates, memory.
$ echo '{model: llama-3.1-8b, workload: generate, generate: {batch: 8, input: 512, output: 64}, cluster: {node: dgx-h100, nodes: 1}, gpus: 1}' > text.yaml
$ orrery compare text.yaml --vary strategy.precision=bf16,fp8
stdout first token +each token
stdout ^bf16 +8 .*yes
stdout ^fp8 +8 .*yes
