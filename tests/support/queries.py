"""Queries that tests ask, the studies that they are asked in, and messages that hold more than they should."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.protobuf.message import Message

from synod.common.protocol.plan import plan_study
from synod.common.protocol.queries.agreements import SumAgreements
from synod.common.protocol.queries.marginals import LocalMarginals, SumMarginals
from synod.common.protocol.queries.moments import SumMoments
from synod.common.protocol.queries.parents import ChooseParents
from synod.common.protocol.queries.parsing import AnyQuery
from synod.common.protocol.queries.rows import Synthesize, share_rows
from synod.common.protocol.steps import Step
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study
from tests.support.studies import categorical, make_model, make_roster, make_study

SIZES = (2, 3, 4, 2)
SCHEMA = [categorical(f"a{i}", size) for i, size in enumerate(SIZES)]
ROSTER = make_roster(("north", "harbour"), (400, 800))
NETWORK = make_study(schema=SCHEMA, roster=ROSTER, epsilon="10", method={"name": "dp-subn", "encoding": "vanilla"})
"""Its features are the attributes, of sizes 2, 3, 4 and 2."""
BITS = make_study(
    schema=SCHEMA,
    roster=ROSTER,
    epsilon="10",
    method={"name": "dp-subn", "encoding": "binary", "split": ["0.25", "0.1", "0.25", "0.4"]},
)
"""Its features are six bits."""
MOMENTS = make_study(rows=(1, 2, 4), epsilon="0.8")
EXAMPLES: dict[str, tuple[AnyQuery, Study]] = {
    "sum-marginals": (SumMarginals(((0, 1, 3), (2,))), NETWORK),
    "local-marginals": (LocalMarginals(((1, 2), (1, 2), (0,))), NETWORK),
    "sum-agreements": (SumAgreements((b"\x94\x40", b"\x00\x00"), 2), NETWORK),
    "choose-parents": (ChooseParents((0, 2), ((1, (0, 2, 3)), (3, ())), 2, 24, "R"), NETWORK),
    "sum-moments": (SumMoments(), MOMENTS),
    "synthesize": (Synthesize(make_model(MOMENTS), share_rows(MOMENTS)), MOMENTS),
}
"""One query of each kind, with a study that it is sound for."""
UNKNOWN_FIELD = b"\xc0\x3e\x01"
"""Field 1000, which no message has, as a varint."""


def step_of(query: AnyQuery, study: Study) -> Step:
    """A step of the study's plan that is of the query's kind; for a kind that its method never asks, one that all
    parties answer with the whole budget.
    """
    other = Step("asked", "asking", query.kind, study.party_names, study.budget, query.size(study))
    return next((step for step in plan_study(study).steps if step.kind is query.kind), other)


def refusal(action: Callable[[], object], code: Code = Code.INVALID) -> str:
    """The one sentence with which an action is refused."""
    with pytest.raises(SynodError) as caught:
        action()
    assert caught.value.code is code
    sentence = caught.value.sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert ". " not in sentence
    return sentence


def with_unknown_fields(message: Message) -> Iterator[Message]:
    """Copies with an unknown field in one place each: in the message itself, and in each message inside of it."""
    for path in [(), *_inner(message)]:
        copy: Any = type(message)()
        copy.CopyFrom(message)
        place = copy
        for step in path:
            place = place[step] if isinstance(step, int) else getattr(place, step)
        place.MergeFromString(UNKNOWN_FIELD)
        yield copy


def _inner(message: Message, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        places = [(field.name, i) for i in range(len(value))] if field.is_repeated else [(field.name,)]
        for place in places:
            yield (*path, *place)
            yield from _inner(value[place[1]] if len(place) == 2 else value, (*path, *place))
