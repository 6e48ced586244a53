$ orrery simulate -h
stdout --set
stdout --json
stdout --trace
