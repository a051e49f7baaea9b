"""The numbers: hardware targets and energy reference tables, read from data files.

`data/hardware/*.toml` holds one target each, `data/architecture/*.toml` the coefficients and energies per action of one
architecture class at their reference process node, `data/model/*.csv` the models known by name. A target is resolved
against its class: prices are scaled to its node and overrides applied; the record's content is its digest. `digest` and
`sheet` are light; `load` brings cattrs.
"""
