"""Models on several hardware: in figures, run by run, subgraph by subgraph, model by model, in order of a metric."""
