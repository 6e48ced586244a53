$ orrery compare small.yaml no-such.yaml
exit 2
stderr no-such\.yaml
