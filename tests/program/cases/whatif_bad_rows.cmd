# A row with a cell too few is named with its file and line.
$ printf 'rank,step,op,start_us,duration_us\n0,0,gemm,0\n' > log.csv
$ orrery whatif log.csv
exit 2
stderr log.csv:2: has 4 cells under 5 columns
