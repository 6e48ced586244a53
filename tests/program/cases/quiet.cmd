$ orrery simulate small.yaml --quiet
stdout .
no-stderr .
