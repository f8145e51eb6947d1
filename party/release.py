"""A release beside one's own ledger: whether it says of this party what this party did, and nothing else. Pure.

The release is verified already; what is compared here only the party itself can know.
"""

from collections.abc import Sequence
from itertools import zip_longest

from synod.common.crypto.canonical import canonical_hash
from synod.common.protocol.heads import check_own_heads
from synod.common.protocol.manifest import Verdict
from synod.common.runtime.errors import Code, check_failed
from synod.common.study.study import CURATOR_NAME
from synod.party.account import ApprovalState, Entry, fold, key_in_use

ASK = "Keep the release and `synod party ledger export`, and ask the curator's operator."
COMPARED = ("label", "query", "transcript", "cost", "answer")


def compare_release(
    verdict: Verdict, entries: Sequence[Entry], *, name: str, key: str, curator: str
) -> tuple[str, ...]:
    """What was found to agree; raises at the first that does not. `entries` are this party's ledger, `key` is the
    fingerprint of its identity and `curator` the one that its configuration pins, both as of now.

    1. the curator that sealed the release is the pinned one; 2. this party is on the roster under its own key; 3. this
    ledger has the heads that this party has stated, so it is no old copy; 4. it has approved the study, and has not
    recorded another end of it; 5. the release states exactly the answers that were charged: round, query, transcript,
    cost and hash of each, in order. The last answer of a party that the study went on without may have come too late.
    """
    study = verdict.study
    approval = fold(entries).approvals.get(study.digest().hex())
    if approval is not None:  # keys may have been rotated since
        key = key_in_use(entries, approval.study, name, key)
        curator = key_in_use(entries, approval.study, CURATOR_NAME, curator)
    # 1
    if verdict.signers[CURATOR_NAME] != curator:
        raise check_failed("the release is not from the curator that `curator` pins.", ASK)
    # 2
    if verdict.signers.get(name) != key:
        raise check_failed(f"the release of {study.name} does not have {name} under its own key.", ASK)
    # 3
    own_hashes = [canonical_hash(dict(entry)) for entry in entries]
    stated_heads = verdict.enrolments[study.index_of(name)].heads
    check_own_heads(stated_heads, own_hashes, shown_by="the release shows", code=Code.CHECK_FAILED)
    # 4
    if approval is None:
        raise check_failed(f"this ledger has not approved {study.name} as it was published.", ASK)
    is_lost = any(one.party == name for one in verdict.losses)
    if approval.state is ApprovalState.ABORTED or (approval.state is ApprovalState.REVOKED and not is_lost):
        raise check_failed(f"{study.name} was published, and this ledger has it as {approval.state.value}.", ASK)
    # 5
    charged = [
        {part: entry[part] for part in COMPARED}
        for entry in entries
        if entry["kind"] == "charged" and entry["study"] == approval.study
    ]
    stated_charges = _stated_charges(verdict, name)
    if is_lost:  # what it answered last may have come too late
        charged = charged[: max(len(stated_charges), len(charged) - 1)]
    for stated, own in zip_longest(stated_charges, charged):
        if stated != own:
            label = (stated or own)["label"]
            raise check_failed(f"what the release says of round {label} is not what this ledger was charged for.", ASK)
    return (
        "the curator is the one that this party's configuration pins",
        f"{name} is on the roster under its own key, and this ledger has approved the study",
        "this ledger has the entries whose heads are in the release",
        f"all {len(charged)} answers are those that left here, by their hashes, and no other is stated",
        f"what {name} spent is what this ledger was charged",
    )


def _stated_charges(verdict: Verdict, name: str) -> list[dict[str, str]]:
    (account,) = (account for account in verdict.accounts if account.name == name)
    return [
        {
            "label": step.label,
            "query": step.query,
            "transcript": verdict.transcript_hash.hex(),
            "cost": str(step.cost),
            "answer": header.digest.hex(),
        }
        for step, header in zip(account.steps, account.headers, strict=True)
    ]
