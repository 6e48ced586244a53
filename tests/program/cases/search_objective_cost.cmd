# The machine whose tokens cost least, which is not the fastest.
$ echo '{"date": "2026-01-01", "rows": [{"gpu": "a100-sxm-80gb", "cloud_usd": 1}, {"gpu": "h100-sxm", "cloud_usd": 9, "cloud_low_usd": 7, "cloud_high_usd": 11, "uncertain": true, "source": "a page"}]}' > prices.json
$ for objective in time cost; do orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --cluster dgx-a100 --cluster dgx-h100 --prices prices.json --objective $objective > $objective; done; cat cost
$ grep -q 'on 8 x NVIDIA H100' time; grep -q 'on 8 x NVIDIA A100' cost
stdout price of h100-sxm: 9.00 \$ a GPU and hour \(7.00 to 11.00\), uncertain; a page
