$ orrery simulate small.yaml --jsn
exit 2
stderr --jsn
