$ orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --maximize sequence --set model.positions=rope --set search.recompute=full
stdout largest sequence that fits
