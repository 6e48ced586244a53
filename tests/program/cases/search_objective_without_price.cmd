# A price that is not known is no price.
$ echo '{"date": "2026-01-01", "rows": []}' > prices.json
$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --objective cost --prices prices.json
exit 2
stderr no price to rent a100-sxm-80gb is known
