"""Privacy cost, noise laws, exact sampling, and coins."""
