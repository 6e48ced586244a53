# A built-in spec needs no file; a file of the same name goes before it; a misspelt one is named.
$ orrery simulate gpt-3-175b --set strategy.global_batch=64
$ cp small.yaml gpt-3-175b; orrery simulate gpt-3-175b
$ orrery list recipes
$ ! orrery simulate bloom-167b 2>&1
stdout gpt3-175b: 174\.[0-9]+ B parameters on 256
stdout gpt2: 124\.[0-9]+ M parameters on 8
stdout palm-540b +4096
stdout bloom-167b: no such file, and unknown recipe bloom-167b; did you mean bloom-176b\?
