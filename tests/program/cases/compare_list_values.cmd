# Commas inside brackets do not separate.
$ orrery compare small.yaml --vary 'strategy.recompute=none,[mlp, norm]'
stdout ^\[mlp, norm\] 
