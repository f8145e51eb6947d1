"""The table itself: the files of the release, and the first of its rows."""

from collections.abc import Sequence

from synod.common.study.study import Study
from synod.curator.release.report.charts import scroll_table
from synod.curator.release.report.markup import Html, join, outside, tag
from synod.curator.release.report.wording import plural

FILES = {
    "synthetic.csv": "the rows, for every program",
    "synthetic.parquet": "the same rows with their types",
    "model.json": "all that was learned; the rows are drawn from it",
    "answers.parquet": "every released number, with noise",
    "manifest.json": "study, plan, cost, noise and signatures",
}
MISSING = "\u2013"


def show_rows(study: Study, preview: Sequence[Sequence[str]]) -> Html:
    """Links to the files beside this page, and the first rows."""
    links = [tag("li", tag("a", name, href=name), f": {words}") for name, words in FILES.items()]
    parts = [tag("ul", *links, class_="files")]
    if preview:
        heads = [outside(attribute.name) for attribute in study.attributes]
        rows = [tag("tr", *(tag("td", outside(value) if value else MISSING) for value in row)) for row in preview]
        caption = f"The first {plural(len(preview), 'row')} of {study.rows:,}; none is a person"
        parts.append(scroll_table(caption, heads, rows, "rows"))
    return join(parts)
