# Degrees that the spec fixes are not changed by --ranks.
$ orrery run small.yaml --set strategy.data=4 --ranks 3
exit 2
stderr gpus
