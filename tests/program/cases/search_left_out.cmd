# What the proof does not cover is named.
$ orrery search small.yaml --set strategy.recompute=none --set strategy.sharding=zero1 --set search.virtual_stages=[1,2]
stdout not among them: .*dualpipev, .*dualpipe, pipedream, pipedream-2bw, bpipe, vocab-1f1b, vocab-1f1b-alg1, .*offload.activations
