# A row for each combination, impossible ones with their reason; every line has as many cells as the first.
$ orrery compare small.yaml --vary strategy.data=2,3 --tokens 1T --csv >rows.csv
$ python3 -c "import csv; rows = list(csv.reader(open('rows.csv'))); assert len(rows) == 3, rows; assert len({len(r) for r in rows}) == 1, rows; good = dict(zip(rows[0], rows[1])); assert abs(float(good['days']) * 86400 * float(good['tokens_per_s']) / 1e12 - 1) < 0.05, good; assert rows[2][-1] != '', rows[2]"
$ orrery compare small.yaml --vary strategy.data=2 --tokens 1T
stdout .*days.*
