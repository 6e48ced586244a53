# A teacher of another vocabulary gives no distribution over the student's.
$ echo '{model: llama-3.2-1b, sequence: 2048, cluster: {node: dgx-h100, nodes: 1}, teacher: llama-2-7b}' > student.yaml
$ orrery simulate student.yaml
exit 2
stderr student\.yaml:1: teacher: its vocabulary has 32000 tokens, the student's 128256; they must be the same
no-stdout .
