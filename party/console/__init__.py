"""The party operator's console: what waits, what leaves the house, and the decision, in a browser."""
