$ printf 'F0 F1 I0 W0 F2 I1 W1 F3 I2 W2 I3 W3\nF0 I0 F1 I1 W0 F2 I2 W1 F3 I3 W2 W3\n' > order.txt
$ orrery simulate small.yaml --set 'strategy.schedule={file: order.txt}' --set strategy.pipeline=2 --set strategy.global_batch=8 --set 'software={profile: megatron-core, cuda_graphs: true}' --timeline
stdout stage 1 +\.*F.*W
stdout W weight gradients
