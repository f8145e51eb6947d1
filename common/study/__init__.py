"""The study: schema, encoding, and the resolved form that is hashed and approved."""
