$ orrery --version
stdout ^orrery [0-9]+\.[0-9]+\.[0-9]+
