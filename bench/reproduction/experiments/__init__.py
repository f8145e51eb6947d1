"""What is measured beside the grid of methods against epsilon and parties: rivals, and the other papers' figures."""
