$ orrery simulte small.yaml
exit 2
stderr simulte
