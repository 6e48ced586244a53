# A table of measured kernels beside their predictions; rows that no op stands for are counted.
$ printf 'fw,ver,prec,m,n,k,us\nown,1,bfloat16,4096,4096,4096,190\nown,1,int4_wo,4096,4096,4096,190\n' > h100-sxm_gemm.csv
$ orrery validate --kernels h100-sxm_gemm.csv
$ orrery validate --kernels h100-sxm_gemm.csv --json
stdout gemm +bfloat16 +own +h100-sxm +1
stdout 1  h100-sxm_gemm.csv: int4_wo
stdout "schema": "orrery.kernels/1"
