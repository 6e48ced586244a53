# GPUs that cannot hold the degrees are named, with the line.
$ printf 'A=(\n --tensor-model-parallel-size 8\n --pipeline-model-parallel-size 16 )\ntorchrun --nproc_per_node 8 t.py ${A[@]}\n' >x.sh
$ orrery import x.sh
stderr x\.sh:4.*8 GPUs cannot hold tensor 8 x pipeline 16 x context 1 = 128
