$ echo '{"date": 3}' > prices.json
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --prices prices.json
exit 2
stderr prices.json: date: 3 stands where a text is needed; a price list is as models/data/prices.json
