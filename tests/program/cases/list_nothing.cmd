$ orrery list
exit 2
