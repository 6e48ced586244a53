$ orrery search small.yaml --set 'strategy.schedule={file: order.txt}'
exit 2
stderr --set: strategy.schedule: an order from a file: search has no bounds for it yet
