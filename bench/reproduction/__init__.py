"""The papers' claims, measured again: a grid of points, figures, and the page docs/reproduction.md.

Reads real rows, so its figures are not private. It runs the same recipes as the daemons, over in-process parties.
"""
