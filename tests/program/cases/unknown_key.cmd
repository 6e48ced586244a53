$ sed 's/  tensor:/  tensr:/' small.yaml > bad.yaml
$ orrery simulate bad.yaml
exit 2
stderr bad\.yaml:8: .*tensr.*tensor
