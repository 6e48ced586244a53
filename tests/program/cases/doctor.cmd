# This machine may lack something (exit 1), which is then named with what to do.
$ orrery doctor --json > doctor.json || [[ $? == 1 ]]; cat doctor.json
$ orrery doctor > doctor.txt || [[ $? == 1 ]]; grep -E "^(MPI|slots|open files|/dev/shm|CUDA|NCCL|display) " doctor.txt | wc -l | sed 's/^/checks /'
stdout "schema": "orrery.doctor/1"
stdout "name": "/dev/shm"
stdout "mend": 
stdout ^checks 7$
