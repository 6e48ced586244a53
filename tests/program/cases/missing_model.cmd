$ sed '/^model/d' small.yaml > bad.yaml
$ orrery simulate bad.yaml
exit 2
stderr model
