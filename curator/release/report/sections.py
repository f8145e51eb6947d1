"""The parts of the page that are read first: who published what, and how far off counts are."""

from dataclasses import dataclass

from synod.common.study.study import RosterEntry, Study
from synod.curator.methods.base import CountError, publisher_of
from synod.curator.release.report.charts import fold_table
from synod.curator.release.report.markup import Html, join, tag
from synod.curator.release.report.wording import name_parties, percent_about, plural, rounded, whole

LEAST_ERROR = 0.1


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


def show_error(study: Study, error: CountError) -> Html:
    """The error of a 2-way count, in plain words."""
    if error.deviation is None:
        return join([tag("p", error.otherwise), _left_out(study)])
    figure = tag("strong", f"{name_error(error.deviation)} out of {whole(study.total_rows)}", class_="figure")
    words = _describe_error(study, error.deviation, error.counted)
    return join([tag("p", figure), tag("p", words), *_about_features(error), _left_out(study)])


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


def _left_out(study: Study) -> Html:
    return tag(
        "p",
        tag("strong", "Not in this figure: "),
        "what the model cannot express, which is often more than the noise; the chance in the draw of the synthetic "
        f"rows; and errors that were in {'the table' if len(study.roster) == 1 else 'the tables'} of "
        f"{name_parties(study)} before.",
    )
