"""Bayesian networks: graph, search frontier, tables, sampling, evidence."""
