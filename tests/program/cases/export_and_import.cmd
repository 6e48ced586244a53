# What is exported imports again.
$ orrery export small.yaml --to megatron --out x.sh && orrery import x.sh --on dgx-a100 --out again.yaml
$ orrery export again.yaml --to megatron --out y.sh
$ diff <(grep -v '^#' x.sh) <(grep -v '^#' y.sh) && echo the same
stdout ^the same
