# A combination that cannot be is a row with its reason, not the end of the table.
$ orrery compare small.yaml --vary strategy.data=2,3
stdout ^2 .*yes$
stdout ^3 .*gpus|data
