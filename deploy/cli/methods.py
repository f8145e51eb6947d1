"""`synod methods`: the methods that a study may name."""

import click

from synod.common.study.study import known_methods
from synod.deploy.cli.terminal import Example, command, say, say_json


@click.command(name="methods", cls=Example, example="synod methods --json")
@click.option("--json", "as_json", is_flag=True, help="For a machine to read.")
@command
def list_methods(as_json: bool) -> None:
    """List the methods that a study may name, with one line each."""
    from synod.curator.methods.base import method_titles  # noqa: PLC0415  (pulls in every recipe)

    titles, known = method_titles(), known_methods()
    if as_json:
        keys = {name: [key for key in known[name].model_fields if key not in ("name", "version")] for name in titles}
        say_json([{"name": name, "title": title, "keys": keys[name]} for name, title in titles.items()])
        return
    width = max(map(len, titles))
    for name, title in titles.items():
        say(f"{name:<{width}}  {title}")
    say("The keys of each, and what it can and cannot express, are in docs/curator-operator.md.")
