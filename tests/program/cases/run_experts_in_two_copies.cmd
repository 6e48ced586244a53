# Each micro-batch goes through one copy of the model: its tokens are counted there and nowhere else. Losses of one rank.
$ command -v mpirun > /dev/null || { echo agree; exit; }
$ losses() { orrery run experts.yaml --steps 3 --json "$@" | sed -n '/"losses"/,/]/p' | grep -oE '[0-9.]{3,}' | cut -c1-7; }
$ one=$(losses --ranks 1 --set 'strategy={global_batch: 4}')
$ for schedule in 1f1b chimera dualpipe; do
$   two=$(losses --set strategy.schedule=$schedule)
$   [[ $(wc -l <<< "$two") == 3 && $one == "$two" ]] || { echo "$schedule: $two, one rank: $one"; exit 1; }
$ done
$ echo agree
stdout ^agree$
