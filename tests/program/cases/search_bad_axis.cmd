$ orrery search small.yaml --set search.tensr=2
exit 2
stderr tensr.*tensor
