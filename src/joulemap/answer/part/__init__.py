"""The parts of runs: categories, actions, events, subgraphs and operators, by energy, time and energy-delay product."""
