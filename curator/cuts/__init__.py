"""Cuts: which nodes of the attributes' trees a table is made of."""
