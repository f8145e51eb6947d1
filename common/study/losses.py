"""How many parties a study may lose: more must stay than collude, and never one alone."""


def check_losses(parties: int, collusion: int, may_lose: int) -> None:
    """Refuses a `may_lose` after which too few parties could be left.

    Guarantee: of any sum with t colluders in it at least one share of noise is an honest party's, and no sum is of one
    party's rows.
    """
    most = max(0, parties - max(collusion + 1, 2))
    if may_lose > most:
        raise ValueError(
            f"may_lose must be at most {most} for {parties} parties with collusion {collusion}: two must stay, and "
            "more than collude"
        )
