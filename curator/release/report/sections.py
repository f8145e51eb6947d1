"""The sections in words: who published what, how far off counts are, what not to do, how to verify, how to cite."""

from collections.abc import Sequence
from dataclasses import dataclass

from synod.common.study.promise import name_budget, name_unit
from synod.common.study.study import RosterEntry, Study
from synod.curator.methods.base import CountError, publisher_of
from synod.curator.release.report.accuracy import count_varying
from synod.curator.release.report.alone import Baseline
from synod.curator.release.report.charts import fold_table
from synod.curator.release.report.markup import Html, join, tag
from synod.curator.release.report.wording import listed, name_parties, percent, percent_about, plural, rounded, whole

LEAST_ERROR = 0.1
MOST_AUTHORS = 8
ORDER = "Do not compare the parties with each other: the order of the rows says nothing about them."


@dataclass(frozen=True, slots=True)
class Imprint:
    """Who answers for the release: the curator's fingerprint, T, the seed, the version of Synod, and the day on which
    it was published, as the manifest has it.
    """

    curator: str
    transcript_hash: str
    seed: int
    version: str
    published: str


def show_parties(study: Study, imprint: Imprint, members: Sequence[RosterEntry]) -> Html:
    """What was published, by whom; `members` are those of the roster that took part."""
    facts = {
        "Study": tag("strong", study.name),
        "Method": Html(publisher_of(study).title),
        "Synthetic rows": Html(whole(study.rows or 0)),
        "Real rows behind it": Html(whole(sum(entry.rows for entry in members))),
        "Published": Html.escape(imprint.published),
        "Study's hash": _key(study.digest().hex()),
        "Transcript's hash": _key(imprint.transcript_hash),
        "Curator's key": _key(imprint.curator),
        "Seed of the draw": _key(str(imprint.seed)),
    }
    pairs = (element for name, fact in facts.items() for element in (tag("dt", name), tag("dd", fact)))
    words = (
        "The party never showed anybody a row. Its number of rows is public."
        if len(study.roster) == 1
        else "The parties never showed each other, or the curator, a row. Their numbers of rows are public."
    )
    rows = [_party_row(entry) for entry in study.roster]
    heads = ("party", "rows", "fingerprint of its key")
    return join([tag("dl", *pairs, class_="facts"), tag("p", words), fold_table("The parties", heads, rows)])


def _key(text: str) -> Html:
    return tag("span", text, class_="key")


def _party_row(entry: RosterEntry) -> Html:
    name = tag("th", entry.name, scope="row")
    return tag("tr", name, tag("td", whole(entry.rows)), tag("td", _key(entry.key)))


def show_error(study: Study, error: CountError, one_value: float | None, baseline: Baseline | None) -> Html:
    """The error of a 2-way count, in plain words, and what columns published independently would be like; the error of
    a count of one value where only one column varies.
    """
    if count_varying(study) < 2:
        return _show_figure(study, one_value, "A count of one value", []) or tag("p", error.otherwise)
    compared = [] if baseline is None else [tag("p", _describe_alone(baseline, one_value))]
    more = [*_about_features(error), *compared]
    figure = _show_figure(study, error.deviation, f"A count of two {error.counted}", more)
    return figure or join([tag("p", error.otherwise), *compared])


def _show_figure(study: Study, size: float | None, what: str, more: Sequence[Html]) -> Html:
    """A figure with what belongs to it; nothing without one."""
    if size is None:
        return Html()
    figure = tag("strong", f"{name_error(size)} out of {whole(study.total_rows)}", class_="figure")
    return join([tag("p", figure), tag("p", _describe_error(study, size, what)), *more, _left_out(study)])


def name_error(size: float) -> str:
    """An error in rows, as a figure."""
    return f"± {rounded(size)}" if size >= LEAST_ERROR else f"< {LEAST_ERROR}"


def _describe_error(study: Study, size: float, what: str) -> str:
    total = study.total_rows
    if size < LEAST_ERROR:
        return (
            f"{what} is typically off by less than a tenth of a row out of {whole(total)} because of "
            "the noise, which hardly changes any such count."
        )
    return (
        f"{what} is typically off by about {rounded(size)} rows out of {whole(total)} because "
        f"of the noise, which is {percent_about(size / total)} of all rows. Most such counts are closer; about one in "
        f"twenty is off by more than twice that. A count below {rounded(3 * size)} can be noise alone."
    )


def _about_features(error: CountError) -> list[Html]:
    """What else to know where columns are split, or not all of them were counted together."""
    parts = (
        "A feature is a column, or a part of one with more than two values, which tells some of its values from the "
        "others. A count of two categories is made up from several parts then, and can be further off."
    )
    return [tag("p", parts)] * error.is_of_bits + [tag("p", _describe_pairs(error))] * (error.covered < error.pairs)


def _describe_pairs(error: CountError) -> str:
    words = (
        f"There are {plural(error.pairs, 'pair')} of features of different columns. This figure speaks for "
        f"{whole(error.covered)} of them, which the model has in one table that counts all rows."
    )
    if error.partial:
        words += f" Some of the parties, not all, counted {whole(error.partial)} more."
    if error.covered + error.partial < error.pairs:
        words += " What is said of the others follows from the model alone."
    return words


def _describe_alone(baseline: Baseline, one_value: float | None) -> str:
    """One value here and with columns alone; two values, of which columns alone tell nothing."""
    here = "no such count of all rows was released here"
    if one_value is not None:
        here = f"here it is typically off by {_name_rows(one_value)}, where it was released"
    found = baseline.dependence
    return (
        "For comparison: with columns published independently, at the same cost, a count of one value would typically "
        f"be off by {_name_rows(baseline.deviation)} because of the noise; {here}. A count of two values would not be "
        "told at all. Columns published independently would miss how columns go together: on average over pairs of "
        f"columns, {percent(found.missed)} of the published rows would have to move to another cell of the two "
        "columns' table, in the schema's bins, to make the two independent. If the columns had nothing in common, "
        f"{percent(found.by_chance)} would, by the chance in the draw of the rows. Where the two figures are close, "
        "the table says little more about pairs than its single columns do."
    )


def _name_rows(size: float) -> str:
    return f"about {rounded(size)} rows" if size >= LEAST_ERROR else "less than a tenth of a row"


def _left_out(study: Study) -> Html:
    return tag(
        "p",
        tag("strong", "Not in this figure: "),
        "what the model cannot express, which is often more than the noise; the chance in the draw of the synthetic "
        f"rows; and errors that were in {'the table' if len(study.roster) == 1 else 'the tables'} of "
        f"{name_parties(study)} before.",
    )


def show_conclusions(study: Study, off: int, compared: int) -> Html:
    """What the rows are good for, and what not to do with them; what a model cannot express of relations needs columns
    that vary.
    """
    of_model = publisher_of(study).warnings(study) if count_varying(study) > 1 else ()
    arithmetic = (
        "Do not compute p-values or intervals as if the rows were observations: the noise and the model's error are "
        "not in that arithmetic. More synthetic rows do not add information."
    )
    may = [
        "Shares and counts of single values, within the bands under Column by column.",
        *([RELATIONS] if count_varying(study) > 1 else []),
        "Code, charts and models that are tried out on rows of the right shape before they meet real ones.",
    ]
    warnings = [
        "Do not look for a person. No row is one, and a row that looks like somebody you know does so by chance.",
        arithmetic,
        *of_model,
        *([f"Do not rest anything on the {whole(off)} of {whole(compared)} figures that are marked."] if off else []),
        "Do not read rare categories: a share that is smaller than its band may be noise alone.",
        *([ORDER] if len(study.roster) > 1 else []),
        "Do not decide about people by it. It describes tables, with noise, as those tables were.",
    ]
    conclude, beware = (tag("ul", *(tag("li", words) for words in listed)) for listed in (may, warnings))
    return tag(
        "div",
        tag("div", tag("h3", "What you may conclude"), conclude),
        tag("div", tag("h3", "What not"), beware),
        class_="lists",
    )


RELATIONS = (
    "Whether two columns go together, and in which direction, where the relation is wider than its band under How "
    "columns go together."
)


def show_verification(study: Study) -> Html:
    """How to check the release, and what that proves: more where the model and the seed fix the rows."""
    first = (
        "A release is worth what its signatures are worth. Put the fingerprints of the curator and of every party into "
        "a file, one a line, each after its holder's name: curator sha256:... for the curator. Get them from the "
        "organizations themselves, not from this page, and run"
    )
    second = (
        "It works offline. It proves that every file, this page among them, is the one that the curator signed, that "
        "the plan and its cost are the study's, and that each party signed for that curator, for its answers and for "
        "what it spent. "
        f"{_describe_redraw(study)}"
    )
    return join([tag("p", first), tag("pre", "synod verify DIR --trust FILE"), tag("p", second)])


def _describe_redraw(study: Study) -> str:
    if publisher_of(study).draw is None:
        return "It does not prove that the rows follow from the answers: for that you trust the curator."
    return (
        "It also draws the rows again, from the model and the seed, and proves that they are the published ones. It "
        "does not prove that the model follows from the answers: for that you trust the curator."
    )


def show_citation(study: Study, imprint: Imprint, members: Sequence[RosterEntry]) -> Html:
    """A sentence and a BibTeX entry; `members` are the authors."""
    hint = "Add the address that you have it from."
    names = [entry.name for entry in members]
    cited = tag("blockquote", _cite(study, imprint, names)), tag("pre", _bibtex(study, imprint, names))
    return join([*cited, tag("p", hint)])


def _cite(study: Study, imprint: Imprint, names: Sequence[str]) -> str:
    rest = len(names) - MOST_AUTHORS + 1
    authors = listed(names if len(names) <= MOST_AUTHORS else [*names[: MOST_AUTHORS - 1], f"{rest} others"])
    return (
        f"{authors} ({imprint.published[:4]}): {study.name}. Synthetic table of {whole(study.rows or 0)} rows, "
        "differentially private with "
        f"{name_budget(study)} per {name_unit(study)}. {study.method.name}, Synod {imprint.version}, "
        f"study sha256:{study.digest().hex()}."
    )


def _bibtex(study: Study, imprint: Imprint, names: Sequence[str]) -> str:
    digest = study.digest().hex()
    fields = {
        "title": f"{{{study.name}}}: a differentially private synthetic table",
        "author": " and ".join(f"{{{name}}}" for name in names),
        "year": imprint.published[:4],
        "howpublished": f"Published with Synod {imprint.version}, method {study.method.name}",
        "note": f"{whole(study.rows or 0)} synthetic rows, {name_budget(study)} per {name_unit(study)}, "
        f"study sha256:{digest}",
    }
    lines = ",\n".join(f"  {key:12} = {{{value}}}" for key, value in fields.items())
    return f"@misc{{{study.name}-{digest[:8]},\n{lines}\n}}"
