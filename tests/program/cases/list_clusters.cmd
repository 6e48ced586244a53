$ orrery list clusters
stdout dgx-h100
no-stderr .
