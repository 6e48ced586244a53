# Ranks of one class do the same: simulating each of them changes no time.
$ orrery simulate small.yaml --json | grep step_time_s > folded
$ orrery simulate small.yaml --json --unfold | grep step_time_s > unfolded
$ cmp folded unfolded
