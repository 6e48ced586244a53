# A device that never ends fills no memory.
$ orrery simulate small.yaml --profile /dev/zero
exit 2
stderr /dev/zero: is larger than 64 MiB
