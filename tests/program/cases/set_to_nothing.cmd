# An empty value is no value.
$ orrery simulate small.yaml --set strategy.tensor=
exit 2
stderr --set strategy\.tensor=: a value is needed
