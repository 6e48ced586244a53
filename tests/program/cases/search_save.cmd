# --save writes the best strategy, which simulate predicts as the search did.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --save best.yaml > out; cat out
$ step=$(orrery simulate best.yaml | awk '/step time/ {print $3}'); best=$(awk '/TP2/ {print; exit}' out); [[ $best == *" $step "* ]]
stdout to repeat it: orrery simulate best\.yaml
