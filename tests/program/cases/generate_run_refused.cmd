# Products with inputs of eight bits are predicted only.
$ echo '{model: {layers: 2, hidden: 64, heads: 4, vocab: 256, feed_forward: 96}, workload: generate, generate: {batch: 4, input: 16, output: 6}, cluster: {node: localhost}, gpus: 1, software: orrery, strategy: {quantise: {weights: smoothquant}}}' > text.yaml
$ orrery run text.yaml
exit 2
stderr strategy.precision
no-stdout .
