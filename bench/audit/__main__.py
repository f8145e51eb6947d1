"""Prints the audit as a table in Markdown: what is claimed, and what is shown with all of the noise and with half."""

import argparse

from bench.audit.bounds import most_loss
from bench.audit.rows import audited_rows
from bench.audit.run import HALF, audit
from synod.common.privacy.cost import FREE

HEAD = (
    "| what is answered | runs | claim | shown | with half the noise | told by |\n| --- | --- | --- | --- | --- | --- |"
)


def main() -> None:
    """Audits every row whose title has a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only rows whose title has this word")
    chosen = [row for row in audited_rows() if parser.parse_args().word in row.title]
    print(HEAD)
    for row in chosen:
        found = audit(row)
        half = audit(row, HALF) if row.has_noise else None
        kind = "rho" if row.claim.rho else "epsilon"
        claim = "nothing" if row.claim == FREE else f"{kind} {most_loss(row.claim):.3g}"
        shown = "" if half is None else f"{half.bound:.3g}"
        way = found.way if half is None else half.way
        print(f"| {row.title} | {row.runs.counted} | {claim} | {found.bound:.3g} | {shown} | {way} |", flush=True)


if __name__ == "__main__":
    main()
