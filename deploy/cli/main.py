"""The program `synod`: all commands under one name."""

import click

from synod.deploy.cli.certs import certs
from synod.deploy.cli.console import curator_console, party_console
from synod.deploy.cli.curator import curator
from synod.deploy.cli.evaluate import evaluate_command
from synod.deploy.cli.launch import demo, launch_command, verify
from synod.deploy.cli.methods import list_methods
from synod.deploy.cli.party.backup import backup, restore
from synod.deploy.cli.party.commands import party
from synod.deploy.cli.party.inbox import approve_study, list_studies, show_study
from synod.deploy.cli.party.join import join_curator
from synod.deploy.cli.party.ledger import ledger_group
from synod.deploy.cli.rotation import trust
from synod.deploy.cli.study import study_group
from synod.deploy.cli.terminal import EXIT_CODES, Group


@click.group(cls=Group, epilog=EXIT_CODES)
@click.version_option(package_name="synod-dp", prog_name="synod")
def main() -> None:
    """Synod: organizations that may not show each other their rows publish one private synthetic table together."""


for command in (
    certs,
    curator,
    demo,
    evaluate_command,
    launch_command,
    list_methods,
    party,
    study_group,
    trust,
    verify,
):
    main.add_command(command)
for command in (approve_study, backup, join_curator, ledger_group, list_studies, party_console, restore, show_study):
    party.add_command(command)
curator.add_command(curator_console)
