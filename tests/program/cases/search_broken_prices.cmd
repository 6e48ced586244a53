$ echo '{"date": 3}' > prices.json
$ orrery search small.yaml --prices prices.json
exit 2
stderr prices.json: not a price list
