# What the spec gives is fixed, the rest is searched; the printed command repeats the best.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none > out; cat out
$ eval "$(grep -o "orrery simulate SPEC.*" out | sed 's/SPEC/small.yaml/')" > again
$ best=$(awk '/TP2/ {print; exit}' out); step=$(awk '/step time/ {print $3}' again); [[ $best == *" $step "* ]]
stdout the best is proven
stdout limited by
stdout TP2 .*PP2
