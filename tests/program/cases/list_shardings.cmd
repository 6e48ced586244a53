$ orrery list shardings
stdout zero3
no-stderr .
