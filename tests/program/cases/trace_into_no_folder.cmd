$ orrery simulate small.yaml --trace no/such/folder/trace.json > table
exit [12]
stderr no/such/folder
