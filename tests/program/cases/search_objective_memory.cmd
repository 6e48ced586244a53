# Of several machines the one whose GPUs hold least.
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --objective memory --json > out.json; cat out.json
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --json > time.json
$ python3 -c "import json; m,t=(json.load(open(f))['strategies'][0]['report']['memory'] for f in ('out.json','time.json')); assert m['peak_device_bytes'] <= t['peak_device_bytes']"
stdout orrery.search
