"""Records that formulas read: hardware, workloads, configurations, targets, and the energies of their actions."""
