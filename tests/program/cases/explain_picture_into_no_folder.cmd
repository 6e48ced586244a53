# A file that cannot be made is found before anything is simulated.
$ orrery explain small.yaml --picture no/such/folder/picture.svg
exit 2
stderr no/such/folder/picture.svg: cannot write
