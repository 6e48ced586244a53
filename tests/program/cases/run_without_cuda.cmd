# Without a GPU, or where nothing was built for CUDA, one line says so.
$ env -u ORRERY_RANK CUDA_VISIBLE_DEVICES= orrery run small.yaml --device cuda
exit 1
stderr orrery-rank-cuda: is not beside|no GPU
no-stdout .
