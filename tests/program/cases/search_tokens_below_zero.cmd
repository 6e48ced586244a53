# One line of our own, without the range of a double.
$ orrery search small.yaml --tokens -1
exit 2
stderr --tokens: '-1' is no N above 0 and at most 1e\+18$
