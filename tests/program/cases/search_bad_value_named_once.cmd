# The file is named once.
$ orrery search small.yaml --set strategy.schedule=null --set 'search.schedule=[1f1b, pipedream]'
exit 2
no-stderr --set: .*--set:
stderr search\.schedule: strategy\.schedule: 
