"""Question on the machine that joulemap runs on."""
