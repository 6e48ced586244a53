# What is measured needs a file; what is imported may go on to another program.
$ ! orrery calibrate --quick
$ printf '# Collective test starting: all_reduce_perf\n' >table.txt
$ for r in 0 1 2 3 4 5 6 7; do printf '#  Rank %s Group 0 Pid 1 on host device %s [0000:1b:00] NVIDIA H100\n' $r $r; done >>table.txt
$ printf '# size count type redop root time algbw busbw #wrong\n1048576 262144 float sum -1 61.2 17 29 0\n' >>table.txt
$ orrery calibrate --import table.txt
stderr --out FILE is missing
stdout "all_reduce"
