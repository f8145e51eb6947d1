"""What the curator's monitoring sees: certificates, studies by state, whom they wait for, and when parties last called.

All of it is what `synod study status` shows to the operator; no number of an answer is in it.
"""

from collections import Counter
from collections.abc import Mapping

from synod.common.runtime.metrics import Metric, Sample, certificate_metric, whole_minutes
from synod.curator.context import Context
from synod.curator.records import State


def describe_curator(context: Context, *, halted: int, days_left: Mapping[str, int]) -> list[Metric]:
    """The metrics of a curator; of ended studies only their number is read."""
    store = context.store
    ended, opened = store.count_ended(), store.open_studies()
    states = Counter({**ended, **Counter(store.state(record) for record in opened)})
    parties = sorted({entry.name for record in opened for entry in record.study.roster})
    rounds = [(record, query) for record in opened if (query := store.unanswered(record.study_hash)) is not None]
    return [
        certificate_metric(days_left),
        Metric(
            "synod_curator_studies",
            "Studies by state.",
            tuple(Sample(states[state], {"state": state.value}) for state in State),
        ),
        Metric("synod_curator_studies_halted", "Open studies whose session cannot go on.", (Sample(halted),)),
        Metric(
            "synod_curator_study_open_since_timestamp_seconds",
            "When an open study was submitted, in whole minutes.",
            tuple(Sample(whole_minutes(record.created), {"study": record.study.name}) for record in opened),
        ),
        Metric(
            "synod_curator_round_open_since_timestamp_seconds",
            "Since when the open round of a study waits for answers, in whole minutes.",
            tuple(Sample(whole_minutes(query.opened), {"study": record.study.name}) for record, query in rounds),
        ),
        Metric(
            "synod_curator_party_last_seen_timestamp_seconds",
            "When a party of an open study last called, in whole minutes; 0 if not since the start.",
            tuple(Sample(whole_minutes(context.sightings.get(name, 0)), {"party": name}) for name in parties),
        ),
    ]
