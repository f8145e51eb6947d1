"""What puts the parts together: the command line, the launcher, the demo."""
