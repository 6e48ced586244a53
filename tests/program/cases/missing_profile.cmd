$ orrery simulate small.yaml --profile no-such.json
exit 2
stderr no-such\.json
