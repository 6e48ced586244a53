$ orrery trace sumarize trace.json
exit 2
stderr summarize
no-stdout .
