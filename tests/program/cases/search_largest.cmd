$ orrery search small.yaml --maximize sequence --set model.positions=rope --set search.recompute=full
stdout largest sequence that fits
