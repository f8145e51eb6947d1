"""Audits of epsilon: neighbouring tables go through what parties really answer, and somebody who knows all rows but one
tries to tell them apart. How well that works bounds the privacy loss from below, whatever the proofs say.

`python -m bench.audit` prints the table of docs/privacy.md, "Audited"; tests/audit holds it to the claims.
"""
