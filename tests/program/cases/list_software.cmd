$ orrery list software
stdout megatron-core
no-stderr .
