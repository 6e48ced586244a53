# A row without figures: the file, the row and the key.
$ echo '[{"id": "a"}]' > rows.json
$ orrery validate --served rows.json
exit 2
stderr rows\.json
no-stdout .
