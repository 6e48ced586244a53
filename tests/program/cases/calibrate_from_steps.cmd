# A few measured steps become a profile, whose predictions carry a narrower interval; what to measure next is said.
$ printf 'spec,overrides,seconds\nsmall.yaml,,0.9\nsmall.yaml,strategy.micro_batch=2,0.85\nsmall.yaml,sequence=512,0.5\n' > steps.csv
$ orrery calibrate --from-steps steps.csv -o steps.json > out; cat out
$ orrery simulate small.yaml --profile steps.json > with; orrery simulate small.yaml > without
$ grep -E 'factor on the time|measure next|new step is expected' out
stdout measure next
stdout new step is expected
