# A rank that the run does not have is one line, which names those that it has.
$ printf 'rank,step,op,start_us,duration_us\n0,0,gemm,0,100\n1,0,gemm,0,100\n' > log.csv
$ orrery whatif log.csv --without rank=7
exit 2
stderr --without rank: unknown rank 7; known: 0, 1
