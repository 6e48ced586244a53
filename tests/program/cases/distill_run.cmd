# CPU ranks execute a student beside its teacher, and a policy beside its reference.
$ echo '{model: {layers: 2, hidden: 64, heads: 4, vocab: 256, feed_forward: 96}, teacher: {layers: 4, hidden: 96, heads: 4, vocab: 256, feed_forward: 128}, sequence: 32, cluster: {node: localhost}, gpus: 2, software: orrery, strategy: {precision: fp32, tensor: 2, global_batch: 4}}' > student.yaml
$ orrery run student.yaml --steps 2
$ echo '{model: {layers: 2, hidden: 64, heads: 4, vocab: 256, feed_forward: 96}, dpo: {beta: 1}, sequence: 32, cluster: {node: localhost}, gpus: 2, software: orrery, strategy: {precision: fp32, micro_batch: 2, global_batch: 8}}' > pairs.yaml
$ orrery run pairs.yaml --steps 2
$ echo '{model: {layers: 2, hidden: 64, heads: 4, vocab: 256, feed_forward: 96}, teacher: {layers: 4, hidden: 96, heads: 4, vocab: 256, feed_forward: 128}, distill: {gpus: 2, strategy: {pipeline: 2}}, sequence: 32, cluster: {node: localhost}, gpus: 4, software: orrery, strategy: {precision: fp32, tensor: 2, global_batch: 4}}' > apart.yaml
$ orrery run apart.yaml --steps 2
stdout beside a frozen teacher
stdout on 2 GPUs of its own: pipeline 2
stdout beside a frozen reference
