$ orrery simulate small.yaml other.yaml
exit 2
stderr other\.yaml
