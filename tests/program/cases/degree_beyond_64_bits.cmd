$ orrery simulate small.yaml --set sequence=99999999999999999999
exit 2
stderr sequence
