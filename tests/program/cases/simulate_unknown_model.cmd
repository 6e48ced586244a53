# A name that is no model, file or recipe is an unknown model, where machines are named.
$ orrery simulate llama3.1-8b --on 1xdgx-h100
exit 2
stderr ^orrery: unknown model llama3.1-8b; did you mean llama-3.1-8b\?
