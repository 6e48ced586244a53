$ orrery simulate small.yaml | cat -v
stdout [Ss]tep
no-stdout \^\[
no-stderr \[[0-9;]+m
