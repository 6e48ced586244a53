$ orrery simulate small.yaml --set strategy.schedule=1f1c
exit 2
stderr 1f1c.*1f1b
