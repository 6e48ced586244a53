$ orrery simulate small.yaml --threads 0
exit 2
stderr threads
