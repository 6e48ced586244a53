# No communication model was validated for AMD parts: refused, or predicted with a visible mark.
$ orrery simulate small.yaml --set 'cluster={gpu: mi300x, gpus_per_node: 8, nodes: 1, nics: 8, nic_Gbps: 400}' > out 2>&1 || [[ $? == 2 ]]
$ grep -iE 'uncalibrated|communication' out
