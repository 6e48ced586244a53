$ orrery list schedules
stdout 1f1b
no-stderr .
