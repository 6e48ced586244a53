$ orrery schema
stdout "\$schema": "https://json-schema.org/draft/2020-12/schema"
stdout "snapshot_every": \{
no-stderr .
