# Measured inference beside its prediction; what cannot be predicted is counted by its reason.
$ echo '[{"id": "a", "mode": "static batch", "framework": "vLLM 0.9", "model": "llama-3.1-8b", "gpu": "h100-sxm", "precision": "bf16", "batch": 8, "isl": 128, "osl": 64, "metric": "output tokens/s per GPU", "value": 1000}, {"id": "b", "mode": "dance", "framework": "vLLM 0.9", "model": "llama-3.1-8b", "gpu": "h100-sxm", "metric": "steps", "value": 1}]' > rows.json
$ orrery validate --served rows.json
stdout ^tokens/s, static +vLLM +h100-sxm +1 
stdout 1 +mode 'dance' is not built in
