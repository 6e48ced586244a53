# Without --require-fit a model too big is a result like any other.
$ orrery simulate small.yaml --json --set model=gpt3-175b
stdout "fits": *false
