$ orrery simulate small.yaml --set strategy.clip=.nan
exit 2
stderr clip
