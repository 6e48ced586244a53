$ orrery simulate small.yaml --set gpus=0
exit 2
stderr gpus
