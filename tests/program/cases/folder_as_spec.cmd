$ orrery simulate .
exit 2
