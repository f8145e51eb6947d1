"""The report of a release: one self-contained page, made from released statistics and public input only."""
