$ orrery search small.yaml --max-memory nan
exit 2
stderr --max-memory: 'nan' is no GiB above 0
