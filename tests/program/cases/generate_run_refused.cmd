# A cache of eight bits is predicted only.
$ echo '{model: {layers: 2, hidden: 64, heads: 4, vocab: 256, feed_forward: 96}, workload: generate, generate: {batch: 4, input: 16, output: 6, kv_precision: fp8}, cluster: {node: localhost}, gpus: 1, software: orrery, strategy: {precision: fp32}}' > text.yaml
$ orrery run text.yaml
exit 2
stderr generate.kv_precision
no-stdout .
