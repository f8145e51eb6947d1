"""The page docs/reproduction.md, generated from the committed CSV files and `run.json`, so that it cannot drift."""

from collections.abc import Iterator
from pathlib import Path

from bench.reproduction.claims.catalog import PAPERS, Claim
from bench.reproduction.claims.verdicts import (
    CONFIDENCE,
    MARGIN_SHARE,
    SHARE_IN_PART,
    SHARE_TO_BE_EQUAL,
    SHARE_TO_HOLD,
    Verdict,
)
from bench.reproduction.experiments.kernel import KERNEL_ROWS
from bench.reproduction.experiments.plans import FEW, MOST_INFORMATION, RATIO_EPSILONS, THIN
from bench.reproduction.lines import TITLES, name_metric
from bench.reproduction.measure import MOST_CANDIDATES
from bench.reproduction.points import COMPONENTS_EPSILON, PAPER_CONTRIBUTIONS, USUAL_EPSILON, USUAL_PARTIES
from bench.reproduction.summary import FIGURES, Estimate, Figures
from bench.reproduction.tables import MADE
from bench.rivals import LABEL
from bench.rivals.catalog import CUT_CONTINGENCY as CUT

PAGE = "reproduction.md"
FOLDER = "reproduction"

CAPTIONS = {
    "epsilon": f"Methods against ε, at {USUAL_PARTIES} parties",
    "parties": f"Methods against the number of parties, at ε = {USUAL_EPSILON}",
    "components": f"HPDP-DP against the contribution rate, at ε = {COMPONENTS_EPSILON} and 3 parties",
    "covers": "Covers of all pairs of binary features",
    "views": "2-way marginals from the views of a cover",
    "messages": f"Bytes of all answers against the number of parties, at ε = {USUAL_EPSILON}",
    "messages-epsilon": f"Bytes of all answers against ε, at {USUAL_PARTIES} parties",
    "priview": f"PriView and other covers with all of its steps, on bits ({LABEL})",
    "two-parties": "Two parties",
    "rounds": "Rounds of DP-SUBN; first and last search frontier, all messages and their formula, in the paper's bytes",
    "rivals": f"Marginals of attributes: PrivBayes's rivals ({LABEL})",
    "trained": f"Classifiers on four fifths of the rows: rivals ({LABEL}), and releases of one place",
    "scores": "The sum of information of a network, by score and encoding",
    "encodings": "PrivBayes by encoding, marginals of attributes",
    "sources": "PrivBayes with exact networks or exact tables (not private)",
    "beta": "PrivBayes against β",
    "theta": "PrivBayes against θ",
    "degree": "The sum of information against the most parents of a feature",
    "personal": "HPPrivBayes beside PrivBayes, Adult without income",
    "joint": "DPCocGen, histogram and PrivBayes on five attributes of Adult",
    "kept": f"HPDP-DP against the number of components, at ε = {COMPONENTS_EPSILON} and 3 parties",
    "covariance": "The HPDP-DP paper's estimate of the covariance, without noise (not private)",
    "growth": "HPDP-DP against rows: seconds of the processor, and numbers that are sent",
    "seconds": "PrivBayes by score: seconds of the processor",
}
NUMBERS = {
    "epsilon": ("tvd2", "tvd3", "wrong "),
    "parties": ("tvd2",),
    "components": ("components", "wrong "),
    "covers": ("views", "variance"),
    "views": ("tvd2",),
    "messages": ("bytes", "paper_bytes"),
    "messages-epsilon": ("bytes",),
    "priview": ("tvd2", "tvd3"),
    "two-parties": ("wrong ", "bytes"),
    "rounds": ("rounds", "first frontier", "last frontier", "paper_bytes", "formula"),
    "rivals": ("tvd2", "tvd3", "tvd4"),
    "trained": ("wrong ",),
    "scores": ("information",),
    "encodings": ("tvd2", "tvd3"),
    "sources": ("tvd2", "tvd3", "tvd4"),
    "beta": ("tvd3", "tvd4"),
    "theta": ("tvd3", "tvd4"),
    "degree": ("information",),
    "personal": ("tvd2", "tvd3", "wrong "),
    "joint": ("hellinger", "relative", "area "),
    "kept": ("wrong ",),
    "covariance": ("millionths",),
    "growth": ("seconds", "components", "matrices", "models", "rows"),
    "seconds": ("seconds",),
}
NOT_THEIRS = (
    "**These are not the papers' data.** The tables were made by the benchmark in the papers' shapes; no verdict "
    "here says anything about a paper."
)


def write_page(figures: Figures, folder: Path) -> Path:
    """Writes the page beside the folder of its figures."""
    path = folder / PAGE
    path.write_text(make_page(figures), encoding="utf-8")
    return path


def make_page(figures: Figures) -> str:
    """The whole page."""
    parts = ["# The papers' claims, measured again", *_introduce(figures), *_count(figures), *_explain()]
    for paper, claims in PAPERS.items():
        parts += [f"## {paper}", _claim_table(claims, figures)]
    parts += ["## Figures", "Bars in plots and ± in tables are standard errors over the runs."]
    for name in FIGURES:
        if figures.rows[name]:
            parts += list(_show_figure(figures, name))
    return "\n\n".join(parts) + "\n"


def _introduce(figures: Figures) -> Iterator[str]:
    run = figures.run
    yield (
        "This page is generated: `python -m bench.reproduction --page-only` rewrites it from the CSV files in "
        "[reproduction/](reproduction/), and a test compares the two. It reads real rows, so nothing in it is private."
    )
    if run.source == MADE:
        yield NOT_THEIRS
    runs = "; ".join(_count_runs(figures, table) for table in run.runs)
    dates = " to ".join(sorted({run.dates[0], run.dates[-1]}))
    yield f"""\
- made by `{run.command}`, on a machine with {run.cores} cores that did other work beside
- commit {", ".join(run.commits)}; {dates}
- {runs}
- the same recipes as the daemons run, over in-process parties; rows dealt to equal parties at random. Real parties
  differ from each other, which these figures do not show
- threshold t = 0, one full share of noise in every sum, as the papers have it. Synod's default t = 1 multiplies the
  variance of a sum's noise by K/(K - 1)"""


def _count_runs(figures: Figures, table: str) -> str:
    """How many runs the numbers of a table have; figures with fewer are named. What needs no seed was computed once."""
    counts = {
        name: min(found)
        for name, rows in figures.rows.items()
        if (found := [row.estimate.runs for row in rows if row.table == table and row.estimate.runs > 1])
    }
    most = max(counts.values(), default=1)
    fewer = "".join(f", of {name} {count}" for name, count in counts.items() if count < most)
    why = " (these take longest; `--first-seed` adds to them)" if fewer else ""
    return f"{most} runs of {TITLES[table]} (seeds 0 to {most - 1}){fewer}{why}"


def _count(figures: Figures) -> Iterator[str]:
    verdicts = [claim.judge(figures).verdict for claims in PAPERS.values() for claim in claims]
    counts = [f"{verdict.value}: {verdicts.count(verdict)}" for verdict in Verdict]
    yield f"**{len(verdicts)} claims. {', '.join(counts).capitalize()}.**"


def _explain() -> Iterator[str]:
    yield "## How to read it"
    contributions = ", ".join(f"{rate} on {TITLES[table]}" for table, rate in PAPER_CONTRIBUTIONS.items())
    yield f"""\
- **distance**: the average total variation distance of all 2-way or 3-way marginals between real and synthetic rows, on
  bits (52 of them for Adult)
- **misclassification**: the share of a fifth of the real rows that a linear SVM gets wrong which was trained on
  synthetic rows; `no privacy` was trained on the other real rows. Targets: Adult's salary (above 50K) and education
  (post-secondary), NLTCS's outside and money. Adult's education follows from `education-num`, which is an input
- **clearly**: a difference of more than {MARGIN_SHARE:.0%}, and more than Student's t allows at {CONFIDENCE:.0%}
  with the standard errors of both; less is undecided
- **holds**: never clearly contradicted, and clearly true at {SHARE_TO_HOLD:.0%} of the points or more; **holds in
  part**: never contradicted and somewhere true, or more often true than contradicted and true at {SHARE_IN_PART:.0%} or
  more; **undecided**: no point says anything clearly, which more runs might; **does not hold**: anything else
- a trend is one point for each number that it is read from, its end against its beginning. That two numbers are equal
  is undecided where they differ by more than {SHARE_TO_BE_EQUAL:.0%} and errors are too large to tell
- these rules were not fixed beforehand: Student's t, **undecided**, the {SHARE_TO_BE_EQUAL:.0%}, both rules for figure
  8 of DP-SUBN and the third run of Adult came after a look at one and two runs; that PriView is compared under an equal
  cut, that a frontier of the same size does not shrink, and that a tenth decides whether MWEM is better than Uniform,
  after a look at their numbers too; those for the seconds, covariances and growth of HPDP-DP and for the granularities
  of DPCocGen, after a look at one run; that MODL's own partition decides its figures 3 to 5 beside ours, after a look
  at five. The numbers stand beside each verdict
- lines with `exact` in their name are not private: a step of theirs has an ε of a million, which shows what the noise
  of the others does. `{MOST_INFORMATION}` is the best network that a greedy search finds without noise
- thinner than the papers: bits of Adult (figure 5 of PrivBayes) at ε = {", ".join(THIN)}; its classifiers of bits
  (figure 7) at ε = {USUAL_EPSILON}; those of exact networks and tables (figure 11), β and θ at ε =
  {" and ".join(FEW)}
- HPPrivBayes has Adult in our bins and without income; its rival is PrivBayes with whole codes. Both have at most four
  parents and tables that are θ-useful, but for figure 3, where tables may have any size; ratios are at ε =
  {", ".join(RATIO_EPSILONS)}. `kernel` machines, as the paper's are, learn from {KERNEL_ROWS:,} rows, and as many are
  tested
- seconds are those of the processor, of all parties and the curator in one process, without encryption
- *(beside)*: on a table that the paper did not have; it does not decide
- `dp-subn` is the sequential update with the split of ε that Synod takes by default; `dp-subn, paper's split` has four
  quarters, `dp-subn, joint` is ours
- `hpdp-dp, linear on bits` is the paper's model, with its contribution rates ({contributions}) and Synod's noise;
  `hpdp-dp` is what Synod ships
- the HPDP-DP paper compares with DP-SUBN³, a later method than DP-SUBN that is not implemented here; `dp-subn` stands
  in for it
- `dp-ccbn` was run where no iteration has more than {MOST_CANDIDATES:,} candidates and Synod does not refuse it; its
  bytes are counted from its candidates everywhere, which a test compares with a run
- overlapping views are a greedy covering design as PriView would use one; NOCD's tree is the one of least variance
- the rivals of PrivBayes, and PriView with all of its steps, are {LABEL}: `bench/rivals`. All are accounted for as
  Synod is, for a replaced row, which doubles the noise of most. `Contingency` cuts negative counts of marginals,
  `{CUT}` those of the table that they come from, which publishes one table; `pairs` and `triples` are what
  PriView's views cover, and without `ripple` negative counts are cut by norm-sub
- figures of the PrivBayes, HPPrivBayes and DPCocGen papers have one party, and marginals of attributes as they are
- `bytes` are those of all parties' answers in Synod's encoding (packed, 3072-bit keys; the rows that HPDP-DP's parties
  draw are among them), `paper_bytes` the same tables as the DP-SUBN paper counts them: two ciphertexts of 1,024 bits a
  cell
- what of a paper is not private is not run: see [privacy.md](privacy.md), sections 8 and 11"""


def _claim_table(claims: tuple[Claim, ...], figures: Figures) -> str:
    rows = ["| where | claim | here | verdict |", "| --- | --- | --- | --- |"]
    for claim in claims:
        judged = claim.judge(figures)
        rows.append(f"| {claim.where} | {claim.text} | {judged.measurement} | **{judged.verdict.value}** |")
    return "\n".join(rows)


def _show_figure(figures: Figures, name: str) -> Iterator[str]:
    caption = CAPTIONS[name]
    yield f"### {caption}"
    yield f"![{caption}]({FOLDER}/{name}.png)"
    yield f"All numbers: [{name}.csv]({FOLDER}/{name}.csv)."
    for table in sorted({row.table for row in figures.rows[name]}):
        for wanted in NUMBERS[name]:
            for metric in figures.metrics(name, table, wanted):
                if metric == wanted or wanted.endswith(" "):
                    yield _number_table(figures, name, table, metric)


def _number_table(figures: Figures, name: str, table: str, metric: str) -> str:
    lines = {m: figures.series(name, table, m, metric) for m in figures.methods(name, table)}
    places = sorted({x for line in lines.values() for x in line})
    title = f"{TITLES[table]}, {name_metric(metric)}" if table else name_metric(metric)
    rows = [f"| {title} | {' | '.join(f'{x:g}' for x in places)} |", "| --- " * (len(places) + 1) + "|"]
    rows += [
        f"| {method} | {' | '.join(_cell(line.get(x)) for x in places)} |" for method, line in lines.items() if line
    ]
    return "\n".join(rows)


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    if estimate.mean >= 100 or (estimate.mean.is_integer() and not estimate.error):
        return f"{estimate.mean:,.0f}"
    return f"{estimate.mean:.4f} ± {estimate.error:.4f}" if estimate.runs > 1 else f"{estimate.mean:.4f}"
