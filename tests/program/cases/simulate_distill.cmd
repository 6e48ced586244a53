# A student beside a frozen teacher: what the teacher is, that its logits lie beside the student's, what it costs.
$ echo '{model: llama-3.2-1b, teacher: llama-3.1-8b, sequence: 2048, cluster: {node: dgx-h100, nodes: 1}, strategy: {tensor: 2, global_batch: 16}}' > student.yaml
$ orrery simulate student.yaml
$ orrery explain student.yaml --all
$ orrery compare student.yaml --vary teacher=llama-3.2-3b,llama-3.1-8b
stdout ^ +beside a frozen teacher: llama-3\.1-8b of 8\.03 B parameters$
stdout GiB teacher x 1
stdout a frozen teacher beside the model
stdout teacher\.layers +32
stdout ^llama-3\.2-3b
