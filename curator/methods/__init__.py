"""One recipe a file: a publishing method as an async function over the private queries."""

from synod.curator.methods.base import Recipe
from synod.curator.methods.dp_ccbn import publish_dp_ccbn
from synod.curator.methods.dp_subn import publish_dp_subn
from synod.curator.methods.hpdp_dp import publish_hpdp_dp
from synod.curator.methods.independent import publish_independent

RECIPES: dict[str, Recipe] = {
    "hpdp-dp": publish_hpdp_dp,
    "dp-subn": publish_dp_subn,
    "dp-ccbn": publish_dp_ccbn,
    "independent": publish_independent,
}
