# The message stays one line.
$ orrery simulate $'no\nsuch.yaml'
exit 2
