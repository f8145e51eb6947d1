"""What the curator works out from public or released numbers: covering designs, search frontiers, networks."""
