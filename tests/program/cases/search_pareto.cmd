# Ever less memory for ever more time.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.micro_batch=null --set search.micro_batch=[1,2,4] --pareto > out; cat out
$ sed -n '/time against memory/,$p' out | awk '/GiB/ { if (n++ && ($1 < t || $3 > m)) exit 1; t = $1; m = $3 } END { exit n < 2 }'
stdout time against memory
