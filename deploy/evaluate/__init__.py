"""How near a synthetic table comes to real rows. All of it reads real rows, so nothing in it is private."""
