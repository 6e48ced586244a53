# What prices refuse has the file and line of the section that lacks it.
$ orrery simulate small.yaml --set cluster.node=gb300-nvl72 --set cluster.nodes=2 --set gpus=8 --set 'strategy={data: 8, global_batch: 16, sharding: parameter-server}'
exit 2
stderr cluster\.host: missing; an update on the host needs
