$ orrery manual orrery-simulte
exit 2
stderr orrery-simulate
