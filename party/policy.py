"""The policy: what this party's operator allows, checked against a study before anything is read or reserved. Pure."""

from decimal import Decimal

from synod.common.privacy.cost import Cost
from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.parsing import check_feasible
from synod.common.runtime.errors import refused
from synod.common.runtime.settings import PartySettings
from synod.common.study.promise import USUAL_DELTA, describe_cost
from synod.common.study.study import Study, explain_large_delta, is_large_delta

POLICY = "Change the study, or the policy."
STUDY = "Ask the curator's operator for a study without it."


def check_policy(settings: PartySettings, study: Study, *, own_key: str) -> Cost:
    """What the study costs this party, if the policy allows it.

    1. this party is on the roster, under its own key, and the curator's key is not; 2. the method is allowed; 3. a
    study with delta is allowed at all, no delta of the policy is too large for this party's rows, and the cost is
    within the cap of its kind for one study; 4. the collusion threshold, the number of parties, those that may be lost
    not counted, and the key size are high enough; 5. only allowed columns are asked for, and never the unit of privacy,
    which is there where the study counts on units of several rows; 6. answers of its own are allowed if the method
    needs them; 7. no step can ask for more numbers than allowed, and the study is feasible.
    """
    # 1
    entries = {entry.name: entry for entry in study.roster}
    if settings.name not in entries:
        raise refused(f"{settings.name} is not on the roster of {study.name}.", "Ask the curator's operator to add it.")
    if entries[settings.name].key != own_key:
        raise refused(
            f"the roster of {study.name} pins another key for {settings.name}.",
            "Send the curator's operator what `synod party fingerprint` prints.",
        )
    if study.pins(settings.curator):
        raise refused(
            f"the roster of {study.name} has the curator's own key for a party.",
            "Ask the curator's operator for a study whose parties are others.",
        )
    # 2
    if settings.methods is not None and study.method.name not in settings.methods:
        raise refused(f"the method {study.method.name} is not among the allowed `methods`.", POLICY)
    # 3
    cost = plan_study(study).cost_of(settings.name)
    _check_cost(settings, study, cost)
    # 4
    _require("collusion", study.collusion, "min_collusion", settings.min_collusion)
    left = "the number of parties that may be left" if study.may_lose else "the number of parties"
    _require(left, study.fewest_parties, "min_parties", settings.min_parties)
    _require("key_bits", study.key_bits, "min_key_bits", settings.min_key_bits)
    # 5
    if settings.columns is not None:
        extra = [attribute.name for attribute in study.attributes if attribute.name not in settings.columns]
        if extra:
            raise refused(
                f"the study asks for the column {extra[0]}, which is not among the allowed `columns`.", POLICY
            )
    if settings.unit in {attribute.name for attribute in study.attributes}:
        raise refused(f"the study asks for the column {settings.unit}, which is this party's unit of privacy.", STUDY)
    if study.max_rows_per_unit > 1 and settings.unit is None:
        raise refused(
            f"the study protects persons with up to {study.max_rows_per_unit} rows, and this party's configuration "
            "does not say which column tells persons apart.",
            "Set `unit` to that column of the table, which never leaves; rows of a person are counted by it.",
        )
    # 6
    if not settings.allow_local_queries and any(
        step.kind.is_local for step in plan_study(study).steps_of(settings.name)
    ):
        raise refused(
            f"the method {study.method.name} asks this party for answers of its own, outside of the encrypted sum.",
            "Set `allow_local_queries: true` if your policy allows that; such answers are private on their own.",
        )
    # 7
    for step in plan_study(study).steps_of(settings.name):
        if step.limit.numbers > settings.max_cells:
            raise refused(
                f"the step {step.label} may ask for {step.limit.numbers} numbers; `max_cells` is {settings.max_cells}.",
                "Raise `max_cells` if your policy allows it, or ask for smaller tables.",
            )
    check_feasible(study)
    return cost


def _check_cost(settings: PartySettings, study: Study, cost: Cost) -> None:
    """Each kind of cost has caps of its own. The delta of a study is not compared with that of the policy: rho is what
    adds up, and the policy's pair holds for the sum whatever epsilon and delta each study was asked at.
    """
    if study.delta is None:
        most = settings.max_epsilon_per_study
        if most is not None:
            _require_within(cost, "max_epsilon_per_study", Cost.pure(most), USUAL_DELTA)
        return
    if settings.max_rho_total is None:
        raise refused(
            f"{study.name} has a delta; this party allows studies of pure epsilon only.",
            "Set `max_rho_total: {epsilon: ..., delta: ...}` if your policy allows others.",
        )
    own_rows = study.roster[study.index_of(settings.name)].rows
    caps = {"max_rho_total": settings.max_rho_total, "max_rho_per_study": settings.max_rho_per_study}
    for key, cap in caps.items():
        if cap is not None and is_large_delta(cap.delta, own_rows):
            why, hint = explain_large_delta(cap.delta, own_rows)
            raise refused(f"this party's `{key}` does not fit its table: {why}.", hint)
    largest = settings.max_rho_per_study
    if largest is not None:
        _require_within(cost, "max_rho_per_study", largest.cost, largest.delta)


def _require_within(cost: Cost, key: str, cap: Cost, delta: Decimal) -> None:
    if not cost.fits_within(cap):
        raise refused(
            f"the study costs {describe_cost(cost, delta)}; `{key}` allows {describe_cost(cap, delta)}.",
            f"Ask for less, or raise `{key}` if your policy allows it.",
        )


def _require(what: str, value: int, key: str, least: int) -> None:
    if value < least:
        raise refused(f"{what} is {value}; this party's `{key}` is {least}.", POLICY)
