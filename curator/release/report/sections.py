"""The sections in words: who published what, how far off counts are, what not to do, how to verify, how to cite."""

from dataclasses import dataclass

from synod.common.study.promise import name_budget
from synod.common.study.study import RosterEntry, Study
from synod.curator.methods.base import CountError, publisher_of
from synod.curator.release.report.alone import ColumnsAlone
from synod.curator.release.report.charts import fold_table
from synod.curator.release.report.markup import Html, join, tag
from synod.curator.release.report.wording import listed, name_parties, percent, percent_about, plural, rounded, whole

LEAST_ERROR = 0.1
MOST_AUTHORS = 8
ORDER = "Do not compare the parties with each other: the order of the rows says nothing about them."


@dataclass(frozen=True, slots=True)
class Imprint:
    """Who answers for the release: the curator's fingerprint, T, the seed and the version of Synod."""

    curator: str
    transcript_hash: str
    seed: int
    version: str


def show_parties(study: Study, imprint: Imprint) -> Html:
    """What was published, by whom."""
    facts = {
        "Study": tag("strong", study.name),
        "Method": Html(publisher_of(study).title),
        "Synthetic rows": Html(whole(study.rows or 0)),
        "Real rows behind it": Html(whole(study.total_rows)),
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


def show_error(study: Study, error: CountError, alone: ColumnsAlone | None) -> Html:
    """The error of a 2-way count, in plain words, and what columns published independently would be like."""
    baseline = [] if alone is None else [tag("p", _describe_alone(alone))]
    if error.deviation is None:
        return join([tag("p", error.otherwise), *baseline, _left_out(study)])
    figure = tag("strong", f"{name_error(error.deviation)} out of {whole(study.total_rows)}", class_="figure")
    words = _describe_error(study, error.deviation, error.counted)
    return join([tag("p", figure), tag("p", words), *_about_features(error), *baseline, _left_out(study)])


def name_error(size: float) -> str:
    """An error in rows, as a figure."""
    return f"± {rounded(size)}" if size >= LEAST_ERROR else f"< {LEAST_ERROR}"


def _describe_error(study: Study, size: float, what: str) -> str:
    total = study.total_rows
    if size < LEAST_ERROR:
        return (
            f"A count of two {what} is typically off by less than a tenth of a row out of {whole(total)} because of "
            "the noise, which hardly changes any such count."
        )
    return (
        f"A count of two {what} is typically off by about {rounded(size)} rows out of {whole(total)} because "
        f"of the noise, which is {percent_about(size / total)} of all rows. Most such counts are closer; about one in "
        f"twenty is off by more than twice that. A count below {rounded(3 * size)} can be noise alone."
    )


def _about_features(error: CountError) -> list[Html]:
    """What else to know where columns are split, or not all of them were counted together."""
    bits = (
        "A feature is a column, or one bit of the code of a column with more than two values. A count of two "
        "categories that have several bits is made up from several features, and can be further off."
    )
    return [tag("p", bits)] * error.is_of_bits + [tag("p", _describe_pairs(error))] * (error.covered < error.pairs)


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


def _describe_alone(alone: ColumnsAlone) -> str:
    """The baseline: less noise, and nothing of how columns go together."""
    noise = f"about {rounded(alone.deviation)} rows" if alone.deviation >= LEAST_ERROR else "less than a tenth of a row"
    return (
        "For comparison: with columns published independently, at the same cost, a count of one value would typically "
        f"be off by {noise} because of the noise. Columns published independently would miss how columns go together: "
        f"on average over pairs of columns, {percent(alone.missed)} of the published rows would have to move to "
        "another cell of the two columns' table, in the schema's bins, to make the two independent. Of columns that "
        f"have nothing to do with each other, {percent(alone.by_chance)} would, by the chance in the draw of the rows. "
        "Where the two figures are close, the table says little more about pairs than its single columns do."
    )


def _left_out(study: Study) -> Html:
    return tag(
        "p",
        tag("strong", "Not in this figure: "),
        "what the model cannot express, which is often more than the noise; the chance in the draw of the synthetic "
        f"rows; and errors that were in {'the table' if len(study.roster) == 1 else 'the tables'} of "
        f"{name_parties(study)} before.",
    )


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
        f"{name_budget(study)} per row. {study.method.name}, Synod {imprint.version}, "
        f"study sha256:{study.digest().hex()}."
    )


def _bibtex(study: Study, imprint: Imprint) -> str:
    digest = study.digest().hex()
    fields = {
        "title": f"{{{study.name}}}: a differentially private synthetic table",
        "author": " and ".join(f"{{{entry.name}}}" for entry in study.roster),
        "howpublished": f"Published with Synod {imprint.version}, method {study.method.name}",
        "note": f"{whole(study.rows or 0)} synthetic rows, {name_budget(study)} per row, study sha256:{digest}",
    }
    lines = ",\n".join(f"  {key:12} = {{{value}}}" for key, value in fields.items())
    return f"@misc{{{study.name}-{digest[:8]},\n{lines}\n}}"
