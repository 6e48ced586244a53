$ orrery simulate small.yaml --set gpus=16 --set strategy.data=4
exit 2
stderr gpus
