# Dapple cuts its stages unlike the others, so that bounds for both would be wrong.
$ orrery search small.yaml --set search.schedule=[1f1b,dapple]
exit 2
stderr search.*schedule: dapple cuts its stages unlike the others; search it by itself, as strategy.schedule
