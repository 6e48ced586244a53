$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --against strategy.sharding=zero3 --pareto --json > out.json; cat out.json
$ python3 -c "import json; j=json.load(open('out.json')); assert j['against']['slower'] > 0 and j['against']['report']['step_time_s'] > 0; assert j['pareto'][0]['name'] == j['strategies'][0]['name']"
stdout "pareto"
