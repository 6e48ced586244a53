$ for what in models clusters gpus schedules shardings software; do orrery list $what --json; done
stdout "gpu": "h100-sxm"
stdout "schedule": "1f1b"
stdout "bf16 \(TFLOP/s\)": 989\.4
no-stderr .
