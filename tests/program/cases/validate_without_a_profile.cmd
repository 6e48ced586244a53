# A prediction of this machine needs its measured times.
$ orrery validate small.yaml
exit 2
stderr --profile is required
no-stdout .
