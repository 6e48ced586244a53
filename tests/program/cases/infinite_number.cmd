$ orrery simulate small.yaml --set strategy.bucket_MiB=.inf
exit 2
stderr bucket_MiB
