"""The party: the only room that reads rows; it checks, charges and answers the planned queries."""
