# Without a GPU, or where nothing was built for CUDA, one line says so.
$ env CUDA_VISIBLE_DEVICES= orrery calibrate --device cuda --out profile.json
exit 1
stderr orrery-rank-cuda: is not beside|no GPU
no-stdout .
