$ { cat small.yaml; echo 'gpus: 4'; } > bad.yaml
$ orrery simulate bad.yaml
exit 2
stderr bad\.yaml.*gpus
