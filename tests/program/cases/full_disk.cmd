$ orrery simulate small.yaml --json > /dev/full
exit 1
stderr .
