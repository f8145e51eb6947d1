"""The party: the only side that reads rows; it checks, charges and answers the planned queries."""
