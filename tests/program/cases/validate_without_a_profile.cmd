# A machine that nobody has measured is measured in short form first.
$ printf 'model: {layers: 2, hidden: 64, heads: 2, feed_forward: 128, vocab: 256, tied_embeddings: true}\nsequence: 32\ncluster: {node: localhost}\ngpus: 2\nsoftware: orrery\nstrategy: {precision: fp32, global_batch: 4}\n' >two.yaml
$ orrery validate two.yaml --steps 5 --tolerance 1000
stdout predicted against measured
stdout measured in short form: repetitions differ by
