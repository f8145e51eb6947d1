"""Paillier, packing, canonical JSON, identities and certificates."""
