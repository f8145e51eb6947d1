"""The end of the page: what not to do with the rows, how to verify them, how to cite them."""

from synod.common.study.schema import write_decimal
from synod.common.study.study import Study
from synod.curator.methods.base import publisher_of
from synod.curator.release.report.markup import Html, join, tag
from synod.curator.release.report.sections import Imprint
from synod.curator.release.report.wording import listed, whole

MOST_AUTHORS = 8
ORDER = "Do not compare the parties with each other: the order of the rows says nothing about them."


def show_caveats(study: Study) -> Html:
    """What not to do with the rows."""
    arithmetic = (
        "Do not compute p-values or intervals as if the rows were observations: the noise and the model's error are "
        "not in that arithmetic. More synthetic rows do not add information."
    )
    warnings = [
        "Do not look for a person. No row is one, and a row that looks like somebody you know does so by chance.",
        arithmetic,
        *publisher_of(study).warnings(study),
        "Do not read rare categories: a share that is smaller than its band may be noise alone.",
        *([ORDER] if len(study.roster) > 1 else []),
        "Do not decide about people by it. It describes tables, with noise, as those tables were.",
    ]
    return tag("ul", *(tag("li", words) for words in warnings))


def show_verification() -> Html:
    """How to check the release, and what that proves."""
    first = (
        "A release is worth what its signatures are worth. Put the fingerprints of the curator and of every party into "
        "a file, one a line. Get them from the organizations themselves, not from this page, and run"
    )
    second = (
        "It works offline. It proves that every file, this page among them, is the one that the curator signed, that "
        "the plan and its cost are the study's, and that each party signed for what it spent. It does not prove that "
        "the rows follow from the answers: for that you trust the curator."
    )
    return join([tag("p", first), tag("pre", "synod verify DIR --trust FILE"), tag("p", second)])


def show_citation(study: Study, imprint: Imprint) -> Html:
    """A sentence and a BibTeX entry. The page knows no date, so that the same log always gives the same page."""
    hint = "Add the year, and the address that you have it from."
    return join([tag("blockquote", _cite(study, imprint)), tag("pre", _bibtex(study, imprint)), tag("p", hint)])


def _cite(study: Study, imprint: Imprint) -> str:
    names = [entry.name for entry in study.roster]
    rest = len(names) - MOST_AUTHORS + 1
    authors = listed(names if len(names) <= MOST_AUTHORS else [*names[: MOST_AUTHORS - 1], f"{rest} others"])
    return (
        f"{authors}: {study.name}. Synthetic table of {whole(study.rows or 0)} rows, differentially private with "
        f"epsilon {write_decimal(study.epsilon)} per row. {study.method.name}, Synod {imprint.version}, "
        f"study sha256:{study.digest().hex()}."
    )


def _bibtex(study: Study, imprint: Imprint) -> str:
    digest = study.digest().hex()
    fields = {
        "title": f"{{{study.name}}}: a differentially private synthetic table",
        "author": " and ".join(f"{{{entry.name}}}" for entry in study.roster),
        "howpublished": f"Published with Synod {imprint.version}, method {study.method.name}",
        "note": f"{whole(study.rows or 0)} synthetic rows, epsilon {write_decimal(study.epsilon)} per row, "
        f"study sha256:{digest}",
    }
    lines = ",\n".join(f"  {key:12} = {{{value}}}" for key, value in fields.items())
    return f"@misc{{{study.name}-{digest[:8]},\n{lines}\n}}"
