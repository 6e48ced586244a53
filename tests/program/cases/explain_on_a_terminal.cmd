# A terminal, whose width COLUMNS tells, gets what decides the step; --all has the rest.
$ COLUMNS=100 orrery explain small.yaml > short; COLUMNS=100 orrery explain small.yaml --all > all; cat short
$ grep -q "Values and where they come from" all; grep -q "Nearest validated rows" all; head -n 12 all > a; head -n 12 short | cmp - a
stdout ^What limits the step
stdout --all shows the rest
no-stdout Values and where they come from
