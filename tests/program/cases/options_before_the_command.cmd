$ orrery --threads 1 --quiet simulate small.yaml
stdout step time
no-stderr .
