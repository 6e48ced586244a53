# Where orrery-rank is built.
$ rank=$(dirname "$(realpath "$(command -v orrery)")")/orrery-rank
$ if [[ -x $rank ]]; then $rank --version; else echo orrery-rank 0; fi
stdout ^orrery-rank [0-9]
