"""The only reader of rows."""
