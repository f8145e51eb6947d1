"""The claims of all papers, in the order of the page. A claim that cannot be measured says why."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.reproduction.claims import dp_subn as subn
from bench.reproduction.claims import hpdp_dp as hpdp
from bench.reproduction.claims.verdicts import Judgement, Verdict
from bench.reproduction.summary import Figures


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says, where, and how it is judged."""

    where: str
    text: str
    judge: Callable[[Figures], Judgement]


def _not_measured(why: str, _figures: Figures) -> Judgement:
    return Judgement(Verdict.UNKNOWN, why)


def _refuted(why: str, _figures: Figures) -> Judgement:
    return Judgement(Verdict.FAILS, why)


def _later(where: str, text: str, method: str) -> Claim:
    return Claim(where, text, partial(_not_measured, f"`{method}` is not in this version"))


_NO_DISTDIFFGEN = partial(_not_measured, "DistDiffGen is not a method of Synod")

DP_SUBN = (
    Claim("Fig. 4 (a, b)", "DP-SUBN is closer than Independent at every ε (K = 3)", subn.beats_independent),
    Claim("Fig. 4 (a, b)", "DP-SUBN is closer than DP-CCBN at every ε (K = 3)", subn.beats_candidates),
    Claim("Fig. 4 (c, d)", "DP-SUBN misclassifies less than Independent at every ε", subn.classifies_better),
    Claim("Fig. 4 (c, d)", "DP-SUBN misclassifies less than DP-CCBN at every ε", subn.classifies_better_too),
    Claim("Fig. 5 (a, b)", "DP-SUBN is closer than Independent and DP-CCBN at each K (ε = 0.2)", subn.beats_at_every_k),
    Claim("Fig. 5 (c, d)", "DP-SUBN misclassifies less than both at every K", subn.classifies_better_at_every_k),
    Claim("Fig. 5", "as K grows, DP-SUBN improves slightly", subn.improves_with_parties),
    Claim("Fig. 5", "as K grows, DP-CCBN stays as it is", subn.candidates_stay),
    Claim("Fig. 5", "as K grows, Independent gets clearly worse", subn.independent_declines),
    Claim("Fig. 5", "the lead of DP-SUBN over Independent grows with K", subn.lead_grows),
    Claim("Fig. 6", "DP-SUBN misclassifies less than DistDiffGen (two parties)", _NO_DISTDIFFGEN),
    Claim("VI-C", "NOCD needs fewer views than PriView to cover all pairs", subn.fewer_views),
    Claim("Fig. 7", "2-way marginals from NOCD's views are closer than from PriView's", subn.nocd_is_closer),
    Claim("Fig. 7", "both get closer as ε grows", subn.views_get_closer),
    Claim("Fig. 8", "DP-SUBN sends orders of magnitude less than DP-CCBN, at every K", subn.sends_less),
    Claim("Fig. 8", "the difference grows with K", subn.gap_grows),
    Claim("Fig. 8", "DP-SUBN sends less than DistDiffGen (two parties)", _NO_DISTDIFFGEN),
    Claim(
        "VI-E",
        "DP-SUBN is ε-differentially private for each party's table",
        partial(_refuted, "by proof, not by measurement: removing earlier noise releases exact counts. "
                "Synod's version is private; see [privacy.md](privacy.md), section 11"),
    ),
)  # fmt: skip

HPDP_DP = (
    Claim("5.1, Fig. 3", "NLTCS: the first component alone contributes more than 30 %", hpdp.first_component),
    Claim("5.1, Fig. 3", "NLTCS: seven components reach 80 %", hpdp.seven_components),
    Claim("5.1, Fig. 3", "NLTCS: with these, accuracy is above 80 %", hpdp.accurate_enough),
    Claim("5.1, Fig. 3", "the more components, the more accurate", hpdp.more_components),
    Claim("5.2, Fig. 4", "HPDP-DP is clearly more accurate than DP-SUBN (education, money, outside)", hpdp.beats_subn),
    Claim("5.2, Fig. 4", "on Adult's salary HPDP-DP is not less accurate than DP-SUBN", hpdp.not_worse_on_salary),
    Claim("5.2, Fig. 4", "both get more accurate as ε grows", hpdp.improves_with_epsilon),
    Claim("5.3, Fig. 5", "HPDP-DP is more accurate than DP-SUBN at every K (ε = 0.2)", hpdp.beats_subn_at_every_k),
    Claim("5.3, Fig. 5", "both get more accurate as K grows", hpdp.improves_with_parties),
    Claim("4, 5.3", "the noise is that of one place, whatever K", hpdp.noise_is_central),
    Claim(
        "4",
        "HPDP-DP is ε-differentially private",
        partial(_refuted, "by proof, not by measurement: the printed noise is too small, means and latents are exact. "
                "Synod's version is private; see [privacy.md](privacy.md), section 8"),
    ),
)  # fmt: skip

PRIVBAYES = (
    _later("Fig. 4", "the scores F and R find networks of more mutual information than I", "privbayes"),
    _later("Figs. 5 to 8", "hierarchical encoding with R is best overall on non-binary tables", "privbayes"),
    _later("Figs. 9, 10", "β of 0.2 to 0.5 and θ of 3 to 6 are good everywhere", "privbayes"),
    _later("Figs. 12 to 15", "closer than Laplace, Fourier, Uniform, Contingency and MWEM on marginals", "privbayes"),
    _later("Figs. 16 to 19", "SVMs on its rows misclassify less than those of other private methods", "privbayes"),
)

HPPRIVBAYES = (
    _later("Fig. 3", "networks hold more mutual information than PrivBayes's for k > 1", "hpprivbayes"),
    _later("Fig. 4", "more accurate than PrivBayes on education", "hpprivbayes"),
    _later("Fig. 5", "2- and 3-way marginals are closer than PrivBayes's", "hpprivbayes"),
    _later("Fig. 6", "the smaller r, the more accuracy varies with the budget", "hpprivbayes"),
)

DPCOCGEN = (
    _later("Fig. 2", "the joint distribution is closer than the noisy histogram's (Hellinger)", "dpcocgen"),
    _later("Fig. 3", "range queries have a smaller error than the histogram's and PrivBayes's", "dpcocgen"),
    _later(
        "Figs. 4, 5", "classifiers of sex and relationship are better than the histogram's and PrivBayes's", "dpcocgen"
    ),
)

PAPERS = {
    "DP-SUBN (Su, Tang, Cheng, Chen, Wu 2016)": DP_SUBN,
    "HPDP-DP (Gu, Zhang, Yang 2022)": HPDP_DP,
    "PrivBayes (Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017)": PRIVBAYES,
    "HPPrivBayes (Deng 2025)": HPPRIVBAYES,
    "DPCocGen (Benkhelif, Fessant, Clérot, Raschia 2017)": DPCOCGEN,
}
