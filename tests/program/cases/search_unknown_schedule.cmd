$ orrery search small.yaml --set 'strategy.schedule={file: order.txt}'
exit 2
stderr --set: strategy.schedule: search does not know order files
