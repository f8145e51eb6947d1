"""The command line, one group a file."""
