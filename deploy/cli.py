"""The program `synod`: all commands under one name."""

import click

from deploy.commands.certs import certs
from deploy.commands.curator import curator
from deploy.commands.evaluate import evaluate_command
from deploy.commands.launch import demo, launch_command, verify
from deploy.commands.party import party
from deploy.commands.study import study_group
from deploy.terminal import EXIT_CODES


@click.group(epilog=EXIT_CODES)
@click.version_option(package_name="synod-dp", prog_name="synod")
def main() -> None:
    """Synod: organizations that may not show each other their rows publish one private synthetic table together."""


for command in (certs, curator, demo, evaluate_command, launch_command, party, study_group, verify):
    main.add_command(command)

if __name__ == "__main__":
    main()
