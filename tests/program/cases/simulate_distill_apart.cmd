# A teacher on GPUs of its own: how it is cut, how long its GPUs and the student's compute nothing, what crosses.
$ echo '{model: llama-3.2-1b, teacher: llama-3.1-8b, distill: {gpus: 4, strategy: {tensor: 4}}, sequence: 2048, cluster: {node: dgx-h100, nodes: 1}, strategy: {tensor: 2, global_batch: 16}}' > student.yaml
$ orrery simulate student.yaml
$ orrery explain student.yaml --all
$ orrery compare student.yaml --vary distill.strategy.tensor=1,2,4 --vary strategy.tensor=1,2
stdout ^ +beside a frozen teacher: llama-3\.1-8b of 8\.03 B parameters on 4 GPUs of its own: tensor 4$
stdout idle: the student's 4 GPUs
stdout ^ *teacher stage 0
stdout hand-over
stdout distill\.strategy\.tensor +4
