$ orrery compare
exit 2
