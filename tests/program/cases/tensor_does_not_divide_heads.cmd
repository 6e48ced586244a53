# GPT-2 has 12 heads.
$ orrery simulate small.yaml --set strategy.tensor=8 --set strategy.pipeline=1 --set strategy.data=1
exit 2
stderr tensor: 8 does not divide heads: 12
