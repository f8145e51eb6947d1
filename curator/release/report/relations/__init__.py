"""How columns go together: what was released about pairs of them, beside the synthetic rows."""
