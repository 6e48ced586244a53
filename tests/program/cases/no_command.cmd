$ orrery
exit 2
