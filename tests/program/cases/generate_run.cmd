# CPU ranks generate text, and tell times of passes, memory and tokens.
$ echo '{model: {layers: 2, hidden: 64, heads: 4, vocab: 256, feed_forward: 96}, workload: generate, generate: {batch: 4, input: 16, output: 6, chunk: 8}, cluster: {node: localhost}, gpus: 4, software: orrery, strategy: {tensor: 2, pipeline: 2, precision: fp32}}' > text.yaml
$ orrery run text.yaml --steps 2
stdout generates 4 x 6 tokens from prompts of 16
stdout first token
stdout decode, last
stdout measured on 4 CPU ranks
stdout sequence 3 +[0-9 ]+$
