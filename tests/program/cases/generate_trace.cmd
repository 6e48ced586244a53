# A trace names the passes of a generation.
$ echo '{model: llama-3.1-8b, workload: generate, generate: {batch: 8, input: 512, output: 64}, cluster: {node: dgx-h100, nodes: 1}, gpus: 1}' > text.yaml
$ orrery simulate text.yaml --set generate.chunk=256 --set generate.output=4 --trace out.json > /dev/null
$ grep -o '"name":"[pd][re][^"]*code [0-9]*"\|"name":"prefill[^"]*"' out.json
stdout "prefill 0 to 255"
stdout "prefill 256 to 511"
stdout "decode 3"
