# A table of measured steps without seconds.
$ printf 'spec,overrides\nsmall.yaml,\n' > steps.csv
$ ! orrery calibrate --from-steps steps.csv -o steps.json
stderr seconds
