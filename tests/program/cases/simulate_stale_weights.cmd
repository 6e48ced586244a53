# Asynchronous schedules tell how stale gradients are, and what the weights that are kept take.
$ orrery simulate small.yaml --set strategy.schedule=pipedream --set strategy.clip=0 --set model.tied_embeddings=false
stdout ^ +weights +versions +staleness$
stdout ^ +stage 0 +2 +1$
stdout ^ +stage 1 +1 +0$
$ orrery explain small.yaml --set strategy.schedule=pipedream-2bw --set strategy.clip=0 --set model.tied_embeddings=false
stdout stage 1: 2 versions of its weights, gradients of weights 1 update old
$ ! orrery simulate small.yaml --set strategy.schedule=pipedream --set model.tied_embeddings=false
stderr strategy\.schedule: clip above 0 with updates on their way over several stages \(pipedream\): .*; set clip: 0
