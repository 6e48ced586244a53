# yaml-cpp calls this a "bad file".
$ printf 'model: %s\n' "$(printf '[%.0s' {1..20000})" > bad.yaml
$ orrery simulate bad.yaml
exit 2
stderr bad\.yaml.*nest
