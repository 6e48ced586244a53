# CLI11's own exit code for this is 105.
$ orrery simulate no-such.yaml
exit 2
stderr no-such\.yaml
