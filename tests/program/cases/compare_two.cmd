$ sed 's/tensor: 2/tensor: 1/; s/data: 2/data: 4/' small.yaml > other.yaml
$ orrery compare small.yaml other.yaml
stdout small
stdout other
