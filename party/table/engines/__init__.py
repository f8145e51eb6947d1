"""Tables in databases: one SELECT for each, streamed to the encoder that files go through."""
