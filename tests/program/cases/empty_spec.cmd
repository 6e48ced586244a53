$ : > empty.yaml; orrery simulate empty.yaml
exit 2
stderr empty\.yaml
