$ orrery compare small.yaml --vary strategy.data=2,3 --json
stdout ^\[$
stdout "report": 
stdout "error": 
