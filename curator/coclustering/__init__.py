"""Co-clustering: the values of each attribute joined into parts, found in one released table. Post-processing."""
