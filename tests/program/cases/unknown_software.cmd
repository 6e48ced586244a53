$ orrery simulate small.yaml --set software=megatron-cor
exit 2
stderr megatron-cor.*megatron-core
