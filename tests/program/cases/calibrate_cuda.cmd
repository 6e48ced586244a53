# One line says what is not built.
$ orrery calibrate --device cuda --out profile.json
exit 1
stderr cuda is not built
no-stdout .
