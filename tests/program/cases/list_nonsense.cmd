$ orrery list planets
exit 2
stderr planets.*models
