$ sed 's/$/\r/' small.yaml > crlf.yaml
$ orrery simulate crlf.yaml --json
stdout "schema"
