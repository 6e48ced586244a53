# Servers and DataParallel are no case of the search: said, not searched with the wrong bounds.
$ orrery search small.yaml --set 'search.sharding=[zero1, parameter-server]'
exit 2
stderr strategy.sharding: data-parallel or parameter-server: search has no bounds for ranks that do unlike work; leave the key out or name another
