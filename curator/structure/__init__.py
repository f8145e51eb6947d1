"""Which values, pairs and tables are worth asking for: decisions from released numbers only."""
