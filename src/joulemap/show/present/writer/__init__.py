"""Writers of documents, one module per output format."""
