# What is missing is named with the way to mend it.
$ PATH=$(dirname "$(command -v orrery)") orrery doctor
exit 1
stdout ^MPI +LACKING +no mpirun on PATH
stdout MPI, for run, calibrate, validate: install Open MPI
