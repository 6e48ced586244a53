# A file of no known tool is refused in one line.
$ printf 'hello\n' > file.txt; orrery import-topology file.txt
exit 2
stderr file.txt: is none of these: nvidia-smi topo -m
