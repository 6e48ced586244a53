$ orrery explain
exit 2
stderr SPEC
