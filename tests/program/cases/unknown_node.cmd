$ orrery simulate small.yaml --set cluster.node=dgx-a1000
exit 2
stderr dgx-a1000.*dgx-a100
