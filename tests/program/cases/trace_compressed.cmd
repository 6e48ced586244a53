$ orrery simulate small.yaml --trace plain.json > table
$ orrery simulate small.yaml --trace packed.json.gz > table
$ gzip -t packed.json.gz; zcat packed.json.gz | cmp - plain.json
