"""Parts of runs by energy, time and energy-delay product: categories, actions, events, subgraphs and operators."""
