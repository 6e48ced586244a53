# A few bytes that inflate to many fill no memory.
$ head -c 300M /dev/zero | gzip -1 > bomb.gz
$ orrery calibrate --import bomb.gz
exit 2
stderr bomb\.gz: is larger than 256 MiB when inflated
