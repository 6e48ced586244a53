# Own shapes are measured here, an import elsewhere.
$ printf '# Collective test starting: all_reduce_perf\n' >table.txt
$ ! orrery calibrate --import table.txt --for spec.yaml
stderr --for measures here, --import reads what was measured elsewhere
