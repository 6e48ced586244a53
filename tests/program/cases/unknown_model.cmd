$ orrery simulate small.yaml --set model=gpt-two
exit 2
stderr gpt-two.*gpt2
