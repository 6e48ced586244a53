# Which run to measure, before any step was measured and after.
$ orrery explain small.yaml --next-run > before; cat before
$ printf 'spec,overrides,seconds\nsmall.yaml,,0.9\nsmall.yaml,strategy.micro_batch=2,0.85\n' > steps.csv
$ orrery calibrate --from-steps steps.csv -o steps.json > out
$ orrery explain small.yaml --next-run --profile steps.json > after; ! cmp -s before after
stdout measure next, most telling first
stdout small with strategy
