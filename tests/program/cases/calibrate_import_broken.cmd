# One line with file and line; no profile appears.
$ printf '# size count type redop root time algbw busbw #wrong\n1048576 262144 float sum -1 nan 17 29 0\n' >all_reduce.txt
$ orrery calibrate --import all_reduce.txt --out cluster.json || { status=$?; test ! -e cluster.json; exit $status; }
exit 2
stderr all_reduce\.txt:2: 
no-stdout .
