# A name from a file moves no cursor.
$ orrery simulate small.yaml --set 'model={base: gpt2, name: "a\e[2J\e]0;pwn\a"}'
exit 2
stderr model\.name: holds a control character, or bytes that are no UTF-8
