$ orrery search small.yaml --deadline 3
exit 2
stderr --tokens
