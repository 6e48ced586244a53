# A file of no framework is refused.
$ printf 'a: 1\n' >x.yaml
$ orrery import x.yaml
exit 2
stderr x\.yaml: no launch file that is known
