$ orrery explain small.yaml --picture picture.png
exit 2
stderr picture.png: a picture is SVG; give a name that ends in .svg
