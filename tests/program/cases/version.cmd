$ orrery --version
stdout ^orrery [0-9]+\.[0-9]+\.[0-9]+ \(commit ([0-9a-f]{12}\+?|unknown), data [0-9a-f]{12}\)$
