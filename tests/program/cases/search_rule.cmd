# No strategy obeys the rules: the line and the rule.
$ sed 's/sequence: 1024/sequence: 4096/' small.yaml > long.yaml; orrery search long.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1
exit 2
stderr long.yaml:3: sequence: 4096 is longer than the model's 1024 learned positions
