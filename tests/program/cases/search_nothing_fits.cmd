$ orrery search small.yaml --max-memory 0.1
exit 1
stdout nothing fits: the leanest strategy needs at least
