"""Questions about served language models as facts, without any text for people."""
