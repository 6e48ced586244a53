# A value is quoted as far as it helps.
$ orrery simulate small.yaml --set strategy.rank_order=$(printf 'x%.0s' {1..5000})
exit 2
no-stderr x{61}
stderr rank_order
