$ { echo 'a0: &a0 [1, 1]'; for i in {1..40}; do echo "a$i: &a$i [*a$((i - 1)), *a$((i - 1))]"; done; cat small.yaml; } > bad.yaml
$ orrery simulate bad.yaml
exit 2
