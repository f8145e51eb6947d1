"""The claims of all papers, in the order of the page. A claim that cannot be measured says why."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.reproduction.claims import dp_subn as subn
from bench.reproduction.claims import dpcocgen as cocgen
from bench.reproduction.claims import hpdp_dp as hpdp
from bench.reproduction.claims import hpprivbayes as personal
from bench.reproduction.claims import privbayes as bayes
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


def _by_proof(verdict: Verdict, why: str, _figures: Figures) -> Judgement:
    return Judgement(verdict, f"by proof, not by measurement: {why}")


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
    Claim("Fig. 6", "DP-SUBN misclassifies less than DistDiffGen (two parties)", subn.beats_distdiffgen),
    Claim("Fig. 6", "more so on education than on salary", subn.more_so_on_education),
    Claim("VI-C", "NOCD needs fewer views than PriView to cover all pairs", subn.fewer_views),
    Claim("Fig. 7", "2-way marginals from NOCD's views are closer than from PriView's", subn.nocd_is_closer),
    Claim("Fig. 7", "the same with all of PriView's steps for both, and its best covers", subn.priview_is_not_closer),
    Claim("Fig. 7", "both get closer as ε grows", subn.views_get_closer),
    Claim("Fig. 8", "DP-SUBN sends orders of magnitude less than DP-CCBN, at every K", subn.sends_less),
    Claim("Fig. 8", "the difference grows with K", subn.gap_grows),
    Claim("Fig. 8", "DP-SUBN sends less than DistDiffGen (two parties)", subn.sends_less_than_distdiffgen),
    Claim("VI-F", "DP-CCBN's structure takes K t₁ d C(d, k+1) 2^(k+2) bits", subn.formula_of_candidates),
    Claim("VI-F", "DP-SUBN needs a round for each cell: 2^(l+1) for each view of l attributes", subn.formula_of_rounds),
    Claim("VI-F", "DP-SUBN takes K t₁ ((d-1) 2^(k'+2) + nᵥ 2^(v+2) + (d-k) 2^(k+2)) bits", subn.formula_of_messages),
    Claim("VII-D", "the search frontier gets smaller from party to party", subn.frontier_shrinks),
    Claim(
        "VI-E",
        "DP-SUBN is ε-differentially private for each party's table",
        partial(_by_proof, Verdict.FAILS, "removing earlier noise releases exact counts. "
                "Synod's version is private; see [privacy.md](privacy.md), section 11"),
    ),
)  # fmt: skip

HPDP_DP = (
    Claim("5.1, Fig. 3", "NLTCS: the first component alone contributes more than 30 %", hpdp.first_component),
    Claim("5.1, Fig. 3", "NLTCS: seven components reach 80 %", hpdp.seven_components),
    Claim("5.1, Fig. 3", "NLTCS: with these, accuracy is above 80 %", hpdp.accurate_enough),
    Claim("5.1, Fig. 3", "the more components, the more accurate", hpdp.more_components),
    Claim("5.1, Fig. 3", "Adult: the same from 5 to 40 components", hpdp.more_kept),
    Claim("5.2, Fig. 4", "HPDP-DP is clearly more accurate than DP-SUBN (education, money, outside)", hpdp.beats_subn),
    Claim("5.2, Fig. 4", "on Adult's salary HPDP-DP is not less accurate than DP-SUBN", hpdp.not_worse_on_salary),
    Claim("5.2, Fig. 4", "both get more accurate as ε grows", hpdp.improves_with_epsilon),
    Claim("5.3, Fig. 5", "HPDP-DP is more accurate than DP-SUBN at every K (ε = 0.2)", hpdp.beats_subn_at_every_k),
    Claim("5.3, Fig. 5", "both get more accurate as K grows", hpdp.improves_with_parties),
    Claim("4, 5.3", "the noise is that of one place, whatever K", hpdp.noise_is_central),
    Claim("5.3", "the weighted mean of owners' covariances gets better as M grows", hpdp.better_covariance),
    Claim(
        "4.2.1",
        "data are safe unless the curator colludes with M - 1 owners",
        partial(_by_proof, Verdict.FAILS, "a quotient of two of an owner's ciphertexts is not blinded. "
                "In Synod the study's threshold t says how many may collude; see [privacy.md](privacy.md), section 8"),
    ),
    Claim("4.2.2", "M owners send M p² numbers before rows are drawn", hpdp.sends_few_numbers),
    Claim("4.2.2", "all messages together have M p² + M p K² + n p numbers", hpdp.sends_as_much),
    Claim("4.2.2", "time is O(M p² + M n): what more attributes cost does not depend on rows", hpdp.grows_apart),
    Claim(
        "4",
        "HPDP-DP is ε-differentially private",
        partial(_by_proof, Verdict.FAILS, "the printed noise is too small, means and latents are exact. "
                "Synod's version is private; see [privacy.md](privacy.md), section 8"),
    ),
)  # fmt: skip

_NO_PRIVGENE = partial(
    _not_measured,
    "PrivGene is a genetic search whose sensitivities are in another paper, which is not at hand; a search from memory "
    "would not be that method",
)
_NOT_AT_HAND = partial(_not_measured, "the tables ACS and BR2000 are not at hand, and may not be made up")

PRIVBAYES = (
    Claim("Fig. 4", "NLTCS: F and R find networks of more information than I, at every ε", bayes.better_scores),
    Claim("Fig. 4", "NLTCS: F finds more than R below ε = 0.4", bayes.f_at_small_epsilon),
    Claim("Fig. 4", "NLTCS: F and R find the same from ε = 0.4 on", bayes.f_like_r),
    Claim("Fig. 4", "Adult, whole codes: R finds more than I", bayes.better_score_on_adult),
    Claim("Fig. 4", "NLTCS: without noise, the best network stays as it is from ε = 0.4 on", bayes.exact_flattens),
    Claim("Fig. 4", "the larger ε, the more information, with every score", bayes.more_with_epsilon),
    Claim("Fig. 4", "what the best network has more shrinks as ε grows", bayes.gap_to_best_shrinks),
    Claim("6.2", "NLTCS: a network takes longer to find with F than with R and I", bayes.slower_score),
    Claim("Fig. 5", "Adult: whole codes are closer than bits at small ε (up to 0.2)", bayes.whole_codes),
    Claim("Fig. 5", "Adult: the lead of whole codes over bits shrinks as ε grows", bayes.lead_of_whole_codes_shrinks),
    Claim("Fig. 5", "Adult: hierarchical and vanilla encoding are nearly equal", bayes.whole_codes_alike),
    Claim("Fig. 7", "Adult: SVMs are best with hierarchical encoding", bayes.hierarchical_learns_best),
    Claim("Fig. 7", "Adult: vanilla encoding learns nothing of education up to ε = 0.8", bayes.vanilla_learns_nothing),
    Claim("Fig. 9", "β of 0.2 to 0.5 is near the best", bayes.good_betas),
    Claim("Fig. 9", "the distance is larger at both ends of β", bayes.bad_ends),
    Claim("Fig. 10", "θ of 3 to 6 is near the best", bayes.good_thetas),
    Claim("Fig. 11", "counts suffer from noisy tables more than from noisy networks", bayes.tables_are_the_error),
    Claim(
        "Fig. 11", "classifiers suffer from noisy networks more than from noisy tables", bayes.networks_are_the_error
    ),
    Claim("Fig. 12", "NLTCS: closer than Laplace, Fourier, Uniform, Contingency and MWEM", bayes.closer_on_nltcs),
    Claim("Fig. 14", "Adult: closer than Laplace, Fourier and Uniform", bayes.closer_on_adult),
    Claim("Figs. 12, 14", "its lead is larger for small ε", bayes.lead_at_small_epsilon),
    Claim("Figs. 12, 14", "its lead is larger for larger marginals", bayes.lead_at_large_order),
    Claim("Fig. 12", "MWEM is no better than Uniform below ε = 0.2", bayes.mwem_like_uniform),
    Claim("Fig. 16", "NLTCS: misclassifies less than PrivateERM", bayes.better_than_erm_on_nltcs),
    Claim("Fig. 18", "Adult: misclassifies less than PrivateERM", bayes.better_than_erm_on_adult),
    Claim("Figs. 16, 18", "misclassifies less than PrivGene", _NO_PRIVGENE),
    Claim("Fig. 16", "NLTCS: PrivateERM with all of ε for one target is better", bayes.single_erm_learns_better),
    Claim("Fig. 18", "Adult: it is not", bayes.not_on_adult),
    Claim("Fig. 18 (b)", "Adult: it misclassifies salary more at ε = 0.1 than at 0.05", bayes.worse_at_first),
    Claim("Fig. 18", "Adult: PrivateERM for one target is worse at ε = 1.6 than at 0.8", bayes.erm_worse_at_last),
    Claim("Figs. 16, 18", "Majority does not depend on ε", bayes.majority_stays),
    Claim("Figs. 6, 8, 13, 15, 17, 19", "the same on ACS and BR2000", _NOT_AT_HAND),
    Claim(
        "Theorem 3.2",
        "PrivBayes is ε-differentially private",
        partial(
            _by_proof,
            Verdict.HOLDS,
            "with the number of rows, bins, bounds and taxonomies public. Sensitivities "
            "hold, that of R loosely, as tests on all neighbours of small tables say; see "
            "[privacy.md](privacy.md), sections 10 and 11",
        ),
    ),
)

HPPRIVBAYES = (
    Claim("Fig. 3", "networks of one parent hold as much information as PrivBayes's", personal.alike_with_one_parent),
    Claim("Fig. 3", "networks of more parents hold more", personal.more_with_several),
    Claim("Fig. 4", "more accurate than PrivBayes on education", personal.learns_better),
    Claim("Fig. 4", "both are close at ε = 0.2 and 0.4", personal.alike_at_small_epsilon),
    Claim("Fig. 4", "both are clearly less accurate than real rows", personal.below_real),
    Claim("Fig. 4", "both get more accurate as ε grows", personal.learns_more),
    Claim("Fig. 5", "2- and 3-way marginals are closer than PrivBayes's", personal.closer),
    Claim("Fig. 5", "both get closer as ε grows", personal.gets_closer),
    Claim("Fig. 6", "the smaller r, the more accuracy varies with the budget", personal.spread_grows),
    Claim(
        "Theorem 1",
        "HPPrivBayes is ε-differentially private",
        partial(
            _by_proof,
            Verdict.FAILS,
            "order, groups and weights are exact functions of the rows, and all tables "
            "of group A are released with the noise of d - k - l. Synod's version pays for both; see "
            "[privacy.md](privacy.md)",
        ),
    ),
)

DPCOCGEN = (
    Claim(
        "Fig. 2",
        "every granularity is closer than the noisy histogram (Hellinger), but 144 cells from ε = 0.5",
        cocgen.closer_joint,
    ),
    Claim("Fig. 2", "MODL's own, finest partition is closer at every ε", cocgen.finest_is_closer),
    Claim("Fig. 2", "144 cells are too coarse at ε = 0.5", cocgen.coarse_fails_late),
    Claim(
        "Fig. 2", "the best granularity varies: 144 cells at the smallest ε, MODL's own at the largest", cocgen.varies
    ),
    Claim("Fig. 3", "the error of range queries falls as ε grows, for all three", cocgen.error_falls),
    Claim(
        "Fig. 3", "range queries have a smaller error than the histogram's, as PrivBayes's have", cocgen.smaller_error
    ),
    Claim("Fig. 3", "DPCocGen and PrivBayes are about equal", cocgen.errors_alike),
    Claim("Fig. 4", "classifiers of sex are better than the histogram's and PrivBayes's", cocgen.better_sex),
    Claim("Fig. 5", "classifiers of relationship are better than those two", cocgen.better_relationship),
    Claim("Figs. 4, 5", "they are close to those of real rows", cocgen.near_real),
    Claim(
        "5",
        "DPCocGen is ε-differentially private",
        partial(
            _by_proof,
            Verdict.IN_PART,
            "for a row more or less it is; for a row that is replaced, as in Synod, the "
            "printed noise gives 2 ε. Synod's has twice the scale; see [privacy.md](privacy.md), section 10",
        ),
    ),
)

PAPERS = {
    "DP-SUBN (Su, Tang, Cheng, Chen, Wu 2016)": DP_SUBN,
    "HPDP-DP (Gu, Zhang, Yang 2022)": HPDP_DP,
    "PrivBayes (Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017)": PRIVBAYES,
    "HPPrivBayes (Deng 2025)": HPPRIVBAYES,
    "DPCocGen (Benkhelif, Fessant, Clérot, Raschia 2017)": DPCOCGEN,
}
