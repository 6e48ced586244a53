$ orrery simulate small.yaml --threads none
exit 2
stderr threads
