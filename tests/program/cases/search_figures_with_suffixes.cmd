# Figures of options have the suffixes and units of specs.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --tokens 1G --deadline '36 h' --budget 30M --max-memory '100 GB'
stdout dgx-a100 +8 
