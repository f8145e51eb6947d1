"""What curator and party must agree on: pure values and functions, no network, no clock, no hidden randomness."""
