# A command line becomes a spec that simulate takes; what has no key is named on stderr.
$ orrery import 'torchrun --nproc_per_node 8 t.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --vocab-size 1000 --seq-length 128 --micro-batch-size 1 --global-batch-size 8 --manual-gc' --on dgx-h100 >spec.yaml
$ orrery simulate spec.yaml
stdout step time
stderr not translated: command line:1: manual_gc: true
