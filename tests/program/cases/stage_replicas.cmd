# Stages of unlike numbers of ranks: planned and told, but not searched.
$ printf 'model: {name: m, layers: 8, hidden: 512, heads: 8, feed_forward: 2048, vocab: 8192}\nsequence: 512\ncluster: {node: dgx-a100, nodes: 1}\ngpus: 3\nstrategy: {schedule: dapple, stage_replicas: planned, pipeline: 2, micro_batch: 2, global_batch: 16}\n' >dapple.yaml
$ orrery explain dapple.yaml
$ ! orrery search dapple.yaml
stdout strategy\.stage_replicas +\[[0-9, ]+\] +DAPPLE's planner
stdout stages of [0-9, ]+ ranks
stderr dapple\.yaml: strategy\.stage_replicas: stage_replicas: search has no bounds for it yet; leave it out
