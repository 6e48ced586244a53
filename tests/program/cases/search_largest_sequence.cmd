$ sed -i 's/gpt2/llama-3.2-1b/' small.yaml; orrery search small.yaml --set strategy.schedule=1f1b --set strategy.recompute=none --set strategy.sharding=zero1 --max-memory 30 --maximize sequence > out; cat out
$ n=$(grep -o 'fits: [0-9]*' out | cut -c7-); [ $((n % 1024)) = 0 ]; [ $n -gt 1024 ]
stdout largest sequence that fits
