$ orrery simulate small.yaml --require-fit --set model=gpt3-175b
exit 3
