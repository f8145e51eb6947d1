"""A ledger that is gone, rolled back, cloned or broken: the party refuses to go on rather than spend twice."""

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from synod.common.privacy.cost import FREE, Cost
from synod.common.protocol.heads import Head
from synod.common.runtime.errors import Code, SynodError
from synod.common.study.study import Study, parse_study
from synod.curator.records import SeenHead, State
from synod.party.account import ApprovalState
from synod.party.approval import check_study, initialize, reserve
from synod.party.ledger import LEDGER_FILE, Ledger
from synod.v1 import party_pb2 as pb
from tests.support.parties import file_of
from tests.support.simulated_lines import Line
from tests.support.simulation import START, SimulatedSite, World, assert_sound, make_site, run_world
from tests.support.studies import NAMES

PARTY = 1


def state_folder(world: World) -> Path:
    return world.settings(PARTY).state


def back_up(world: World, name: str) -> Path:
    """Copies the party's state folder as it is now."""
    world.stop_party(PARTY)
    backup = world.folder / name
    shutil.copytree(state_folder(world), backup)
    return backup


def restore(world: World, backup: Path) -> None:
    world.stop_party(PARTY)
    shutil.rmtree(state_folder(world))
    shutil.copytree(backup, state_folder(world))


def talk(world: World, times: int = 1) -> None:
    for _ in range(times):
        for index in range(len(NAMES)):
            world.converse(index)


def assert_refuses(world: World, sentence: str) -> None:
    """The daemon ends with this sentence, nothing leaves, and nothing is written."""
    with world.ledger(PARTY) as ledger:
        head = ledger.head()
    before = len(world.sent)
    with pytest.raises(SynodError, match=sentence) as caught:
        world.converse(PARTY)
    assert caught.value.code is Code.REFUSED
    assert [message.name for message in world.sent[before:]] == ["greet"]
    with world.ledger(PARTY) as ledger:
        assert ledger.head() == head


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_a_ledger_rolled_back_is_refused_and_the_newest_one_goes_on(
    rounds: int, site: SimulatedSite, undisturbed: dict[str, bytes]
) -> None:
    """From before the approval, from before the first answer, and from before the second."""
    with run_world(site) as world:
        talk(world, rounds)
        old = back_up(world, "old")
        talk(world)
        new = back_up(world, "new")
        restore(world, old)
        for _ in range(2):
            assert_refuses(world, "behind, or beside")
        restore(world, new)
        world.finish()
        assert_sound(world, undisturbed)


def test_a_clone_that_comes_second_is_refused(site: SimulatedSite, undisturbed: dict[str, bytes]) -> None:
    with run_world(site) as world:
        talk(world)
        clone = back_up(world, "clone")
        talk(world)
        first = back_up(world, "first")
        restore(world, clone)
        with world.ledger(PARTY) as ledger:  # the clone goes its own way, and is as long as the first
            ledger.declare_spent("ward", FREE, now=START)
        assert_refuses(world, "behind, or beside")
        restore(world, first)
        world.finish()
        assert_sound(world, undisturbed)


def test_a_copy_seen_after_the_greeting_stops_the_next_charge_and_not_the_study(
    site: SimulatedSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two copies serve at once, and the other one's entry comes to the curator while this one waits for work."""
    pull = Line.pull

    def pull_while_another_serves(line: Line, head: Head, skip: Sequence[bytes], wait_seconds: int) -> list[pb.Move]:
        moves = pull(line, head, skip, wait_seconds)
        if line._party == NAMES[PARTY] and moves:
            other = Head(head.sequence + 1, bytes(32), head.ledger)
            signature = line._identity.sign("head", other.statement())
            seen = SeenHead(other.ledger, other.sequence, other.hash, signature)
            world.curator.store.see_head(line._identity.public_key, seen)
        return moves

    with run_world(site) as world:
        talk(world)
        monkeypatch.setattr(Line, "pull", pull_while_another_serves)
        with world.ledger(PARTY) as ledger:
            head = ledger.head()
        with pytest.raises(SynodError, match="behind, or beside"):
            world.converse(PARTY)
        with world.ledger(PARTY) as ledger:
            assert ledger.head() == head
        assert (NAMES[PARTY], "moments") not in world.left
        assert world.declined == []
        assert world.curator.state() is State.RUNNING


@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_a_curator_that_hides_what_it_saw_gets_the_same_bytes(
    rounds: int, site: SimulatedSite, undisturbed: dict[str, bytes]
) -> None:
    with run_world(site, hides_heads=True) as world:
        talk(world, rounds)
        old = back_up(world, "old")
        talk(world)
        restore(world, old)
        talk(world)
        restore(world, old)
        for message in world.sent:
            world.deliver_again(message)
        assert all(len(answers) == 1 for answers in world.left.values())
        if rounds < 2:
            return
        talk(world, 3)
        assert world.release() == undisturbed
        with world.ledger(PARTY) as ledger:  # it lacks an answer of a published study, so it frees nothing
            (approval,) = ledger.account().approvals.values()
            assert (approval.state, len(approval.charges)) == (ApprovalState.OPEN, 1)
        assert not world.curator.store.acknowledged(site.study.digest(), NAMES[PARTY])


def test_a_study_approved_twice_enrols_with_other_keys_and_goes_no_further(site: SimulatedSite) -> None:
    """A ledger from before the approval draws another secret; an honest curator holds the party to its first keys."""
    with run_world(site, hides_heads=True, draws_secrets=True) as world:
        old = back_up(world, "old")
        talk(world, 2)
        answered = set(world.left[NAMES[PARTY], "moments"])
        restore(world, old)
        reserve(world.settings(PARTY), check_study(world.settings(PARTY), site.study), now=START)
        world.finish()
        assert world.declined == [(NAMES[PARTY], "a check on its side failed; its operator sees which")]
        assert world.left[NAMES[PARTY], "moments"] == answered


def test_another_table_under_a_ledger_rolled_back_answers_nothing(site: SimulatedSite) -> None:
    """Neither heads nor the curator's honesty are needed: the party's own enrolment tells its tables apart."""
    with run_world(site, hides_heads=True) as world:
        old = back_up(world, "old")
        talk(world, 2)
        answered = set(world.left[NAMES[PARTY], "moments"])
        restore(world, old)
        source = file_of(world.settings(PARTY))
        lines = source.read_text().splitlines()
        source.write_text("\n".join([*lines[:-1], "F,17"]) + "\n")
        with world.ledger(PARTY) as ledger:
            secret = ledger.secret()
        reserve(world.settings(PARTY), check_study(world.settings(PARTY), site.study), now=START)
        for _ in range(2):
            with pytest.raises(SynodError, match="behind, or beside, what the transcript of a study shows"):
                world.finish()
        assert world.declined == [], "the study waits for the newest ledger"
        assert world.left[NAMES[PARTY], "moments"] == answered
        assert (NAMES[PARTY], "rows") not in world.left
        with world.ledger(PARTY) as ledger:
            assert ledger.secret() == secret
            assert ledger.account().spent("ward") == FREE


def lose_ledger(world: World) -> None:
    world.stop_party(PARTY)
    for path in state_folder(world).glob(f"{LEDGER_FILE}*"):
        path.unlink()


def test_a_daemon_makes_no_ledger(site: SimulatedSite) -> None:
    with run_world(site) as world:
        talk(world)
        lose_ledger(world)
        with pytest.raises(SynodError, match="there is no ledger") as caught:
            world.daemon(PARTY)
        assert caught.value.code is Code.INVALID
        assert not (state_folder(world) / LEDGER_FILE).exists()


def another_study(site: SimulatedSite) -> Study:
    return parse_study({**site.study.to_json(), "name": "survey-2", "epsilon": "0.25"}, "the test").resolve()


def test_after_a_loss_everything_counts_as_spent_until_the_operator_says_what_was(site: SimulatedSite) -> None:
    with run_world(site) as world:
        talk(world, 2)
        lose_ledger(world)
        settings, study = world.settings(PARTY), another_study(site)
        initialize(settings, spent=None, now=START)
        with pytest.raises(SynodError, match="counts as fully spent") as caught:
            check_study(settings, study)
        assert caught.value.code is Code.REFUSED
        initialize(settings, spent=Cost.parse("epsilon:3/4"), now=START)
        assert str(check_study(settings, study).cost) == "epsilon:1/4"
        initialize(settings, spent=Cost.parse("epsilon:19/25"), now=START)
        with pytest.raises(SynodError, match=r"has spent epsilon 0\.76 and holds epsilon 0 "):
            check_study(settings, study)
        with pytest.raises(SynodError, match="never comes back"):
            initialize(settings, spent=FREE, now=START)


def test_a_new_ledger_does_not_go_on_with_the_old_study(site: SimulatedSite) -> None:
    """It is another ledger than the one that approved the study, whatever the curator says of heads."""
    with run_world(site) as world:
        talk(world, 2)
        lose_ledger(world)
        initialize(world.settings(PARTY), spent=FREE, now=START)
        talk(world, 3)
        assert world.declined == [(NAMES[PARTY], "not-approved")]
        assert world.curator.state() is State.RUNNING
        assert len(world.left[NAMES[PARTY], "moments"]) == 1
        assert (NAMES[PARTY], "rows") not in world.left


def test_after_a_loss_and_its_declaration_the_party_takes_part_in_new_studies(site: SimulatedSite) -> None:
    with run_world(site) as world:
        world.finish()
        lose_ledger(world)
        initialize(world.settings(PARTY), spent=Cost.parse("epsilon:1/2"), now=START)
        world.converse(PARTY)


def drop_an_entry(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM entries WHERE sequence = 3")


def lower_a_charge(connection: sqlite3.Connection) -> None:
    connection.execute(
        """UPDATE entries SET body = replace(body, '"cost":"epsilon:1"', '"cost":"epsilon:0"') WHERE sequence = 3"""
    )


def swap_two_entries(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE entries SET sequence = 99 WHERE sequence = 2")
    connection.execute("UPDATE entries SET sequence = 2 WHERE sequence = 3")
    connection.execute("UPDATE entries SET sequence = 3 WHERE sequence = 99")


@pytest.mark.parametrize("damage", [drop_an_entry, lower_a_charge, swap_two_entries])
def test_a_broken_chain_is_not_opened(damage: Callable[[sqlite3.Connection], None], site: SimulatedSite) -> None:
    with run_world(site) as world:
        world.finish()
        world.stop_party(PARTY)
        with sqlite3.connect(state_folder(world) / LEDGER_FILE) as connection:
            damage(connection)
        connection.close()
        with pytest.raises(SynodError, match="chain is broken") as caught:
            Ledger.open(state_folder(world))
        assert caught.value.code is Code.CHECK_FAILED


def test_entries_cut_off_the_end_are_found_by_the_greeting(site: SimulatedSite) -> None:
    with run_world(site) as world:
        talk(world, 2)
        world.stop_party(PARTY)
        with sqlite3.connect(state_folder(world) / LEDGER_FILE) as connection:
            connection.execute("DELETE FROM entries WHERE sequence = 3")
            connection.execute("DELETE FROM answers")
        connection.close()
        assert_refuses(world, "behind, or beside")


def test_a_site_is_made_of_ledgers_with_secrets_of_their_own(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    secrets = set()
    for name in NAMES:
        ledger = Ledger.open(site.folder / name / "state")
        secrets.add(ledger.secret())
        ledger.close()
    assert len(secrets) == len(NAMES)
