"""The section about a Bayesian network, or about one for each party."""

from collections.abc import Mapping, Sequence

from synod.common.study.study import Study
from synod.curator.methods.base import ModelSection, Publication
from synod.curator.network.graph import Network
from synod.curator.network.levels import PLAIN
from synod.curator.release.report.markup import Html, join, tag
from synod.curator.release.report.models.columns import describe_columns, list_columns, show_columns
from synod.curator.release.report.models.graph import draw_network, has_bits, list_parents, read_networks
from synod.curator.release.report.wording import plural

MOST_NETWORKS = 10
MOST_LANES = 12  # with more columns the arrows from one to the next lead off a phone, and are not told apart
PARTS = (
    "The method splits a column with more than two values into parts, each of which tells some of its values from the "
    "others, and an arrow leads from part to part. A line is the thicker the more arrows there are between two columns."
)
UNCONNECTED = "Do not look for relations between columns that no arrow of the network connects: they are lost or weak."


def describe_networks(study: Study, publication: Publication) -> ModelSection:
    """The network that everybody shares, or each party's own."""
    networks = read_networks(study, publication)
    shared = networks.get("")
    content = _show_own_networks(study, networks) if shared is None else _show_network(study, shared, "all")
    return ModelSection("The network", content)


def warn_of_networks(study: Study) -> Sequence[str]:
    """What a network of all parties cannot express."""
    del study
    return (UNCONNECTED,)


def _show_own_networks(study: Study, networks: Mapping[str, Network]) -> Html:
    """One network for each party, each made from its own rows; the first one is unfolded. A party alone has the only
    one.
    """
    if len(networks) == 1:
        (network,) = networks.values()
        return _show_network(study, network, "all")
    parts = [tag("p", "Each party has a network of its own, and its part of the rows was drawn from that.")]
    for place, (party, network) in enumerate(networks.items()):
        if place < MOST_NETWORKS:
            drawing = _show_network(study, network, party)
            unfolded = None if place else ""
            parts.append(tag("details", tag("summary", f"The network of {party}"), drawing, open=unfolded))
    if len(networks) > MOST_NETWORKS:
        rest = plural(len(networks) - MOST_NETWORKS, "more network")
        parts.append(tag("p", f"{rest}: see ", tag("code", "model.json"), "."))
    return join(parts)


def _show_network(study: Study, network: Network, key: str) -> Html:
    """Arrows from column to column; of split or many columns which two are joined. Below it the same in words."""
    if has_bits(study):
        words = f"{describe_columns(study, network)} {PARTS}"
        return join([tag("p", words), show_columns(study, network), _fold(list_columns(study, network))])
    listed = _fold(_list_parents(study, network))
    words = _describe_network(network)
    if len(network.pairs) > MOST_LANES:
        return join([tag("p", words), show_columns(study, network), listed])
    label = "Bayesian network, scrolls sideways"
    drawing = tag("div", draw_network(study, network, key), class_="scroll", tabindex=0, role="group", aria_label=label)
    return join([tag("p", words), drawing, listed])


def _fold(table: Html) -> Html:
    return tag("details", tag("summary", "The network as a list"), table)


def _list_parents(study: Study, network: Network) -> Html:
    rows = [
        tag("tr", tag("th", tag("bdi", name), scope="row"), tag("td", _name_all(parents)))
        for name, parents in list_parents(study, network)
    ]
    head = tag("thead", tag("tr", tag("th", "column", scope="col"), tag("th", "drawn from", scope="col")))
    return tag("table", tag("caption", "In the order of drawing"), head, tag("tbody", *rows))


def _describe_network(network: Network) -> str:
    columns, arrows = plural(len(network.pairs), "column"), plural(len(network.edges), "arrow")
    words = f"It has {columns} and {arrows}; no column has more than {plural(network.degree, 'parent')}."
    if network.levels != PLAIN:
        words += " A column may be drawn from groups of another column's values; the list says how many groups."
    if not network.edges and len(network.pairs) > 1:
        words += " Without arrows the columns are drawn independently of each other: the budget allowed no more."
    return words


def _name_all(names: Sequence[str]) -> Html:
    return join((tag("bdi", name) for name in names), "; ") if names else Html("nothing")
