# The order itself is at fault, so its own file and line are named.
$ printf 'F0 F1 B0 B1 F2 F3 B2 B3\nF0 B0 F1 B1 F2 B2 F3\n' > order.txt
$ orrery simulate small.yaml --set 'strategy.schedule={file: order.txt}' --set strategy.pipeline=2 --set strategy.global_batch=8
exit 2
stderr order.txt:2: virtual stage 1, micro-batch 3: only 'F' is there
