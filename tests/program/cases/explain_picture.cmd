# The picture is one SVG file, the same for the same spec; the text is printed as without it.
$ orrery explain small.yaml > plain; orrery explain small.yaml --picture a.svg > text; cmp plain text
$ orrery explain small.yaml --picture b.svg > text; cmp a.svg b.svg; cat a.svg
stdout ^<svg xmlns="http://www.w3.org/2000/svg"
stdout How matrices are cut
stdout class="rank" data-rank="0"
stdout Who talks to whom
stdout ^</svg>
