# Both models' degrees must be multiples or divisors of each other, and all GPUs must be given out.
$ echo '{model: llama-3.2-1b, teacher: llama-3.1-8b, distill: {gpus: 2, strategy: {tensor: 1, data: 2}}, sequence: 2048, cluster: {node: dgx-h100, nodes: 1}, gpus: 5, strategy: {micro_batch: 2, data: 3, global_batch: 6}}' > student.yaml
$ orrery simulate student.yaml
exit 2
stderr student\.yaml:1: distill\.strategy\.data: 2 and strategy\.data: 3: neither divides the other
no-stdout .
