"""Language models as they are served: batches, a steady load, and requests one by one."""
