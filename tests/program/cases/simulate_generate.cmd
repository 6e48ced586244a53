# Text from a trained model: the time to its first token and of each further one, and what the memory holds.
$ echo '{model: llama-3.1-8b, workload: generate, generate: {batch: 8, input: 512, output: 64}, cluster: {node: dgx-h100, nodes: 1}, gpus: 1, software: vllm}' > text.yaml
$ orrery simulate text.yaml
stdout ^ +first token +[0-9.]+ ms after 4,096 tokens
stdout ^ +each further token +[0-9.]+ ms
stdout ^ +largest batch +[0-9,]+ sequences$
$ orrery simulate text.yaml --json
stdout "schema": *"orrery\.generation/1"
no-stdout : *-?(nan|inf)
