"""How good published tables are, beside columns published independently and beside MST and AIM in one place.

All of it reads real rows, so no figure is private.
"""
