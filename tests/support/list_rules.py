"""How a list of operations may end, and the rules that must hold whatever happens in it."""

PUBLISHED = "published by all"
PUBLISHED_WITHOUT = "published with a party lost"
STUCK_ENROLLING = "given up: a party was gone before it had enrolled"
STUCK_TOO_MANY = "given up: more parties were gone than it may lose"
STUCK_SUM = "given up: a party was gone in the middle of a sum"
ENDINGS = (PUBLISHED, PUBLISHED_WITHOUT, STUCK_ENROLLING, STUCK_TOO_MANY, STUCK_SUM)

CHARGED_TWICE = "a charge was made twice"
ANSWERED_TWICE = "a question was answered twice, or under two transcripts"
COULD_GO_ON = "a study that could go on did not"
REFUSED_IN_VAIN = "a party was refused without a reason"
NOT_CHARGED = "an answer left that is in no ledger"
LOST_WRONGLY = "a party was declared lost against the rules, or could not be"
OTHERWISE_WRONG = "something else is wrong"


class Broken(AssertionError):  # noqa: N818
    """A rule does not hold."""

    def __init__(self, rule: str, details: object = "") -> None:
        super().__init__(f"{rule}: {details}")
        self.rule = rule


def require(holds: bool, rule: str, details: object = "") -> None:
    """Raises `Broken` unless the rule holds."""
    if not holds:
        raise Broken(rule, details)
