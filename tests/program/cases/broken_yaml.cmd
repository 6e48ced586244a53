$ printf 'model: gpt2\nsequence: [1024\n' > bad.yaml
$ orrery simulate bad.yaml
exit 2
stderr bad\.yaml:[0-9]+: 
