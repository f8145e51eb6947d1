"""What puts the rooms together: the command line, the launcher, the demo."""
