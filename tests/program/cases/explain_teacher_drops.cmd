# A teacher whose experts have a capacity drops tokens of a micro-batch, which the student's gradient follows.
$ echo '{model: {layers: 2, hidden: 64, heads: 4, vocab: 256, feed_forward: 96}, teacher: {layers: 2, hidden: 64, heads: 4, vocab: 256, feed_forward: 96, moe: {experts: 4, top_k: 1, feed_forward: 64, capacity_factor: 1.25}}, sequence: 64, cluster: {node: dgx-h100, nodes: 1}, gpus: 2, strategy: {data: 2, global_batch: 8}}' > student.yaml
$ orrery explain student.yaml
stdout routers drop tokens over capacity among those of a rank
no-stdout no statistics of a batch
