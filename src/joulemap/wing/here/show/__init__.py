"""Words and tables of the machine that joulemap runs on."""
