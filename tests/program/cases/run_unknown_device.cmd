# Devices are named when one is not known.
$ orrery run small.yaml --device tpu
exit 2
stderr cpu,cuda
