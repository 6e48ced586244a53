# This machine has no built-in times; the line says how to get them.
$ orrery simulate small.yaml --set 'cluster={node: localhost}'
exit 2
stderr orrery calibrate
no-stdout .
