# Steps whose specs name no stack are told which known one they look like; one that is named stays.
$ grep -v '^software' small.yaml > any.yaml; printf 'spec,overrides,seconds\nany.yaml,,0.9\nany.yaml,strategy.micro_batch=2,0.85\nany.yaml,sequence=512,0.5\n' > steps.csv
$ orrery calibrate --from-steps steps.csv -o steps.json > out; cat out
$ sed 's/any/small/' steps.csv > named.csv; orrery calibrate --from-steps named.csv -o named.json > named; ! grep 'look like' named
stdout of the known ones the steps look like
