# The printed command repeats the best on the machine that it was found on, with all that --set changed.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --set sequence=512 --cluster dgx-h100 --gpus 16 --set strategy.data=4 > out; cat out
$ eval "$(grep -o "orrery simulate SPEC.*" out | sed 's/SPEC/small.yaml/')" > again
$ best=$(awk '/TP2/ {print; exit}' out); step=$(awk '/step time/ {print $3}' again); [[ $best == *" $step "* ]]; grep -q "H100" again
stdout TP2 .*DP4
