# Two keys that end with the same word had the same heading.
$ orrery compare small.yaml --set strategy.pipeline=1 --set strategy.data=4 --set teacher=gpt2 --set distill.gpus=4 --vary strategy.tensor=1 --vary distill.strategy.tensor=1,2
stdout strategy.tensor +distill.strategy.tensor
