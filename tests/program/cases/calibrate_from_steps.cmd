# A few measured steps become a profile, which changes predictions of that stack and is refused for another stack or GPU;
# what to measure next is said.
$ printf 'spec,overrides,seconds\nsmall.yaml,,0.9\nsmall.yaml,strategy.micro_batch=2,0.85\nsmall.yaml,sequence=512,0.5\n' > steps.csv
$ orrery calibrate --from-steps steps.csv -o steps.json > out; cat out
$ orrery simulate small.yaml --profile steps.json > with; orrery simulate small.yaml > without; ! cmp -s with without
$ ! orrery simulate small.yaml --profile steps.json --set cluster.node=dgx-h100
$ ! orrery simulate small.yaml --profile steps.json --set software=torchtitan
$ grep -E 'factor on the time|measure next|new step is expected' out
stdout measure next
stderr megatron-core on a100-sxm-80gb, the spec is megatron-core on h100-sxm
stderr megatron-core on a100-sxm-80gb, the spec is torchtitan on
stdout new step is expected
