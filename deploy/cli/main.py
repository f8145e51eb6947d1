"""The program `synod`: all commands under one name.

The modules of commands are imported when a command of theirs is called and not before: all of them together take longer
than most commands do. So what a list of commands says of each is written here too; a test compares.
"""

import click

from synod.deploy.cli.terminal import EXIT_CODES, Group, Later


@click.group(
    cls=Group,
    epilog=EXIT_CODES,
    later={
        "demo": Later(
            "launch:demo",
            "Run the demo: three invented hospitals publish one table together.",
        ),
        "evaluate": Later(
            "evaluate:evaluate_command",
            "Compare the table SYNTHETIC, or that of a release, with REAL rows: a table, or a folder of "
            "them to be pooled.",
        ),
        "launch": Later(
            "launch:launch_command",
            "Run a study over tables on this machine: keys, a curator, one daemon per table, to publication.",
        ),
        "methods": Later(
            "prepare:list_methods",
            "List the methods that a study may name, with one line each.",
        ),
        "verify": Later(
            "launch:verify",
            "Check a release offline: hashes, signatures, plan, spend, and that all of it follows from the "
            "released answers; with --trust also who signed.",
        ),
    },
)
@click.version_option(package_name="synod-dp", prog_name="synod")
def main() -> None:
    """Synod: organizations that may not show each other their rows publish one private synthetic table together."""


@main.group(
    cls=Group,
    later={
        "init": Later(
            "certs:init",
            "Make a transport authority in DIR (ca.pem, ca.key, revoked.pem).",
        ),
        "issue": Later(
            "certs:issue",
            "For demos: make DIR/NAME.pem and the key DIR/NAME.key here, which then has to travel. Else use `sign`.",
        ),
        "revoke": Later(
            "certs:revoke",
            "Put every certificate that NAME got so far on the list DIR/revoked.pem, which the curator reads.",
        ),
        "sign": Later(
            "certs:sign",
            "Show whom a request is for, and sign it as DIR/NAME.pem. Compare the fingerprint by phone "
            "before you say yes.",
        ),
    },
)
def certs() -> None:
    """Run a transport authority: sign requests of curator, operators and parties, and revoke certificates."""


@main.group(
    cls=Group,
    later={
        "console": Later(
            "console:curator_console",
            "Submit and watch studies in a browser: prints a link that is good once, and serves until stopped.",
        ),
        "fingerprint": Later(
            "curator:fingerprint",
            "Print the fingerprint that parties pin as `curator`; makes the identity if there is none.",
        ),
        "kit": Later(
            "curator:kit",
            "Write the one file that a party needs to join: address, transport authority, this curator's fingerprint.",
        ),
        "request-certificate": Later(
            "curator:request_certificate",
            "Make the curator's TLS key if there is none, and a request that the transport authority signs.",
        ),
        "rotate-identity": Later(
            "rotation:rotate_curator",
            "Make a new identity key, signed for by the old one, which is then erased. The service must be stopped.",
        ),
        "serve": Later(
            "curator:serve_curator",
            "Serve parties and operators over mutual TLS until stopped.",
        ),
    },
)
def curator() -> None:
    """Run the curator's service."""


@main.group(
    cls=Group,
    later={
        "accept-rotation": Later(
            "rotation:accept_rotation",
            "Pin the curator's new key, if the pinned one has signed for it. Compare the fingerprint by phone first.",
        ),
        "approve": Later(
            "party.inbox:approve_study",
            "Check a study against policy, budget and table, and reserve what it costs.",
        ),
        "backup": Later(
            "party.backup:backup",
            "Write ledger, identity and snapshots of open studies to a new private file, also while the daemon runs.",
        ),
        "check-release": Later(
            "party.commands:check_own_release",
            "Verify a release, and compare what it says of this party with this party's own ledger.",
        ),
        "console": Later(
            "console:party_console",
            "Read, approve and revoke studies in a browser: prints a link that is good once, and serves until stopped.",
        ),
        "doctor": Later(
            "party.commands:doctor",
            "Find out why this party cannot talk to its curator, or whether it can.",
        ),
        "fingerprint": Later(
            "party.commands:fingerprint",
            "Print the fingerprint that a study's roster pins.",
        ),
        "init": Later(
            "party.commands:init",
            "Make this party's identity key and ledger. Nothing that exists is replaced.",
        ),
        "join": Later(
            "party.join:join_curator",
            "Make party.yaml, keys, a request for a certificate and a ledger, from the kit of a curator's operator.",
        ),
        "ledger": Later(
            "party.ledger:ledger_group",
            "Show what this party approved and spent, every entry with its date. `ledger export` prints the "
            "whole chain.",
        ),
        "rename-dataset": Later(
            "party.commands:rename",
            "Let the dataset NEW go on with what OLD has spent: from then on both names have one account, for good.",
        ),
        "request-certificate": Later(
            "party.commands:request_certificate",
            "Make this party's TLS key if there is none, and a request that the transport authority signs.",
        ),
        "restore": Later(
            "party.backup:restore",
            "Bring a party's state back from a backup, unless anybody has seen a later ledger of it.",
        ),
        "revoke": Later(
            "party.commands:revoke_study",
            "End an approval: nothing more is answered, and what was not spent is free again.",
        ),
        "rotate-identity": Later(
            "rotation:rotate_party",
            "Make a new identity key, signed for by the old one, which is then erased. The daemon must be stopped.",
        ),
        "serve": Later(
            "party.commands:serve",
            "Run the daemon: dial the curator, answer what was approved.",
        ),
        "show": Later(
            "party.inbox:show_study",
            "Show all that a study asks of this party: columns, what leaves at each step, cost, roster. "
            "NAME may be a hash.",
        ),
        "studies": Later(
            "party.inbox:list_studies",
            "List the studies that wait for a decision here, and those that are approved and not ended.",
        ),
    },
)
def party() -> None:
    """Run a party's daemon, and decide what it may answer."""


@main.group(
    cls=Group,
    later={
        "abort": Later(
            "study:abort",
            "End a study for good. What parties have spent stays spent.",
        ),
        "check": Later(
            "prepare:check",
            "Validate a study; print its hash, the resolved study and its plan, or every rule that it breaks.",
        ),
        "draft": Later(
            "prepare:draft",
            "Draft a study from one or several tables, to edit. Reads real rows: the draft is not private.",
        ),
        "fetch": Later(
            "study:fetch",
            "Fetch a published study's release and verify it.",
        ),
        "forecast": Later(
            "prepare:forecast",
            "Say what a study will take and how good its table can be, from public numbers only.",
        ),
        "lose": Later(
            "study:lose",
            "Go on without a party, for good, where the study allows it (`may_lose`). What it has spent stays spent.",
        ),
        "request-certificate": Later(
            "study:request_certificate",
            "Make the TLS key of the curator's operator NAME if there is none, and a request that the authority signs.",
        ),
        "run": Later(
            "study:run",
            "Hand a study to the curator, wait until it is published, fetch the release and verify it.",
        ),
        "status": Later(
            "study:status",
            "Say how studies stand, and whom they wait for since when.",
        ),
        "submit": Later(
            "study:submit",
            "Hand a study to the curator.",
        ),
    },
)
def study() -> None:
    """Write, check and run studies."""


@main.group(
    cls=Group,
    later={
        "rotate": Later(
            "rotation:rotate_trust",
            "Write a trust file that has moved on with signed rotations, in their order. TRUST is left as "
            "it is: releases from before verify with it.",
        ),
    },
)
def trust() -> None:
    """Trust files: whose key is whose, for `synod verify --trust`."""
