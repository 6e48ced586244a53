$ orrery completion ksh
exit 2
stderr bash, zsh, fish
