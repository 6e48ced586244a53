$ orrery list gpus
stdout h100-sxm
no-stderr .
