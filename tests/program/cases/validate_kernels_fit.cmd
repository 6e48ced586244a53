# Laws are fitted to a folder of tables, written, and judged on groups of shapes that they are not fitted to.
$ mkdir tables
$ printf 'fw,ver,prec,m,n,k,us\ntrtllm,1,bfloat16,4096,4096,4096,190\ntrtllm,1,bfloat16,4096,4096,8192,380\n' > tables/h100-sxm_gemm.csv
$ orrery validate --kernels tables --fit laws.json
$ cat laws.json
stdout Laws of kernels alone
stdout gemm +bfloat16 +trtllm \* +h100-sxm +1
stdout "_source": "fitted by orrery validate --kernels --fit to .*: h100-sxm_gemm.csv \([12]\); numbers kept: .*b200 \(products\)
