$ orrery simulate small.yaml --json
stdout "schema": *"orrery\.report/2"
stdout "source": *"simulated"
stdout "step_time_s": *[0-9.e-]*[1-9]
stdout "bubble_fraction":
stdout "peak_device_bytes":
no-stdout : *-?(nan|inf)
