$ orrery simulate small.yaml
stdout [Ss]tep
stdout [Mm]emory
