"""A simulated study whose parties may be copied, set back and gone for good, and what has to be true of it at its end.

What must hold is worked out here from what happened, and not asked of the program: which parties can still talk, who
was declared lost and when, and which round was open then.
"""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synod.common.privacy.cost import FREE
from synod.common.protocol.heads import LedgerBehindError
from synod.common.protocol.manifest import MANIFEST_FILE, verify_release
from synod.common.protocol.plan import plan_study
from synod.common.runtime.errors import Code, SynodError
from synod.curator.records import OpenQuery, State
from synod.curator.roster.losses import HERE_SECONDS
from synod.curator.study_handler import StudyHandler
from synod.party.account import ApprovalState
from tests.support.list_rules import (
    ANSWERED_TWICE,
    COULD_GO_ON,
    LOST_WRONGLY,
    NOT_CHARGED,
    OTHERWISE_WRONG,
    PUBLISHED,
    PUBLISHED_WITHOUT,
    REFUSED_IN_VAIN,
    STUCK_ENROLLING,
    STUCK_SUM,
    STUCK_TOO_MANY,
    check_charges,
    require,
)
from tests.support.simulated_lines import Message
from tests.support.simulated_processes import Killed
from tests.support.simulation import DATASET, MOST_ROUNDS, START, World

REASON = "its server burned down"


@dataclass
class TroubledWorld(World):
    """A world in which parties are copied, set back, or gone for good."""

    gone: set[int] = field(default_factory=set)
    refused: set[tuple[int, int]] = field(default_factory=set)
    copies: dict[int, int] = field(default_factory=dict)
    backups: dict[int, list[Path]] = field(default_factory=dict)
    set_back: set[int] = field(default_factory=set)
    lost: dict[int, set[str]] = field(default_factory=dict)
    """The rounds that were open, or had been, when a party was declared lost."""
    heard: dict[str, float] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)

    # What happens

    def converse(self, index: int, fault: str = "", countdown: int = 0, copy: int = 0) -> None:
        """As any party connects; one that is gone does not, and one whose ledger is behind ends for good."""
        if index in self.gone or (index, copy) in self.refused:
            self.kill_party.when = ""
            return
        try:
            super().converse(index, fault, countdown, copy)
        except LedgerBehindError:
            self.refused.add((index, copy))

    def deliver(self, message: Message) -> Any:
        """As any message; by all but a greeting its sender is here, and by an answer that is new no longer, until it
        asks what is next.
        """
        if message.name == "pull":
            self.answered.discard(message.party)
        if message.name != "greet":
            self.heard[message.party] = self.now
        reply = super().deliver(message)
        if message.name == "submit":
            self.answered.add(message.party)
        return reply

    def vanish(self, index: int) -> None:
        """A party is killed for good, and all copies of it."""
        for copy in range(self.copies.get(index, 0) + 1):
            self.stop_party(index, copy)
        self.gone.add(index)

    def copy_party(self, index: int) -> None:
        """Another machine gets the party's state as it is now, and may serve beside the first."""
        if index in self.gone:
            return
        self.stop_party(index)
        self.copies[index] = self.copies.get(index, 0) + 1
        shutil.copytree(self._home(index), self._home(index, self.copies[index]), dirs_exist_ok=True)

    def back_up(self, index: int) -> None:
        """The party's state is put aside as it is now."""
        if index in self.gone:
            return
        self.stop_party(index)
        kept = self.backups.setdefault(index, [])
        kept.append(self.folder / f"backup-{index}-{len(kept)}")
        shutil.copytree(self._home(index) / "state", kept[-1])

    def restore(self, index: int, number: int) -> None:
        """The party's state becomes what it was; what it was until now is gone."""
        kept = self.backups.get(index, [])
        if index in self.gone or not kept:
            return
        self.stop_party(index)
        head = self._head(index)
        shutil.rmtree(self._home(index) / "state")
        shutil.copytree(kept[number % len(kept)], self._home(index) / "state")
        if self._head(index) != head:
            self.set_back.add(index)

    def lose(self, index: int) -> None:
        """The operator declares a party lost; refused exactly if the study is enrolling or ended, or may lose nobody
        more.
        """
        study, name = self.site.study, self.names[index]
        may = self.curator.state() in (State.KEYED, State.RUNNING) and len(self.lost) < study.may_lose
        opened = {step.label for step in plan_study(study).steps if self._is_opened(step.label)}
        try:
            StudyHandler(self.curator.context).lose(study.digest(), name, REASON)
            accepted = True
        except Killed:
            self.restart_curator()
            accepted = name in self._losses()
            may = may and accepted
        except SynodError as error:
            require(error.code in (Code.NOT_READY, Code.REFUSED), LOST_WRONGLY, error)
            accepted = False
        require(accepted == may or index in self.lost, LOST_WRONGLY, (name, accepted, may))
        if accepted:
            self.lost.setdefault(index, opened)
        self.settle()

    def _note_state(self) -> None:
        """Which moves of a study's state are legal is seen elsewhere, at every commit."""

    # The end

    def end(self) -> str:
        """No more trouble: those who can talk do so, the operator gives up those who cannot, and the study ends. Says
        how, and raises `Broken` if it should have ended otherwise.
        """
        self.kill_curator.when = self.kill_party.when = ""
        self.now += 2 * HERE_SECONDS
        self._everybody_talks()
        stuck = self._stuck()
        for index in sorted(stuck - set(self.lost)):
            self.lose(index)
        for _ in range(MOST_ROUNDS):
            before = self._progress()
            if self._all_know(stuck):
                break
            self._everybody_talks()
            if self._progress() == before:
                break
        return self._judge(stuck)

    def _judge(self, stuck: set[int]) -> str:
        study = self.site.study.digest()
        record = self.curator.store.study(study)
        if record.outcome is None:
            why = self._why_stuck(stuck)
            require(why != "", COULD_GO_ON, f"it is {self.curator.state()}, with {stuck} gone and {self.lost} lost")
            StudyHandler(self.curator.context).abort(record.study.name, by="the operator")
            self._everybody_talks()
        else:
            require(record.outcome is State.PUBLISHED, COULD_GO_ON, record.reason)
            why = PUBLISHED_WITHOUT if self.lost else PUBLISHED
        require(self._all_know(stuck), COULD_GO_ON, "not everybody knows of its end")
        return why

    def check(self, *, verifies: bool) -> None:
        """What must be true of everything that left a party, of every ledger, and of the release."""
        spent = self.check_answers()
        require(self.declined == [], OTHERWISE_WRONG, self.declined)
        for index in set(range(len(self.names))) - self._stuck():
            with self.ledger(index, self._serving(index)) as ledger:
                (approval,) = ledger.account().approvals.values()
            ended = approval.state is not ApprovalState.OPEN and approval.held == FREE
            require(ended, OTHERWISE_WRONG, (self.names[index], approval.state))
        if self.curator.state() is State.PUBLISHED:
            self._check_release(spent, verifies)

    def check_answers(self) -> dict[str, set[str]]:
        """What must be true of everything that left a party and of every ledger, however the study ends; the rounds
        that each party was charged for.
        """
        spent: dict[str, set[str]] = {}
        for index, name in enumerate(self.names):
            left = {label: sent for (party, label), sent in self.left.items() if party == name}
            require(all(len(sent) == 1 for sent in left.values()), ANSWERED_TWICE, (name, sorted(left)))
            transcripts = {submission.transcript for sent in left.values() for submission, _ in sent}
            require(len(transcripts) <= 1, ANSWERED_TWICE, (name, sorted(left)))
            charged = self._check_ledgers(index)
            spent[name] = set(charged)
            if index not in self.set_back:
                require(set(left) <= set(charged), NOT_CHARGED, (name, sorted(left), sorted(charged)))
            for label in set(left) & set(charged):
                ((submission, _),) = left[label]
                facts = (submission.query.hex(), submission.transcript.hex(), submission.digest.hex())
                require(charged[label] == {facts}, ANSWERED_TWICE, (name, label))
        return spent

    def _check_ledgers(self, index: int) -> dict[str, set[tuple[str, str, str]]]:
        ledgers = []
        for copy in range(self.copies.get(index, 0) + 1):
            with self.ledger(index, copy) as ledger:
                ledgers.append((ledger.entries(), ledger.account().spent(DATASET)))
        return check_charges(self.names[index], plan_study(self.site.study).steps_of(self.names[index]), ledgers)

    def _check_release(self, spent: dict[str, set[str]], verifies: bool) -> None:
        folder = self.curator.context.release_folder(self.site.study.digest())
        manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
        told = {loss["party"] for loss in manifest.get("losses", ())}
        require(told <= {self.names[index] for index in self.lost}, OTHERWISE_WRONG, told)
        if verifies:
            verdict = verify_release(folder, None)
            for account in verdict.accounts:
                told = {step.label for step in account.steps}
                set_back = self.names.index(account.name) in self.set_back
                require(told <= spent[account.name] or set_back, NOT_CHARGED, account.name)

    # What is known

    def _everybody_talks(self) -> None:
        for index in range(len(self.names)):
            for copy in range(self.copies.get(index, 0) + 1):
                self.converse(index, copy=copy)

    def _stuck(self) -> set[int]:
        """Who cannot go on: gone for good, or refused because its ledger was set back, with no other copy left."""
        stuck = set(self.gone)
        for index in range(len(self.names)):
            if all((index, copy) in self.refused for copy in range(self.copies.get(index, 0) + 1)):
                require(index in self.set_back or index in self.gone, REFUSED_IN_VAIN, self.names[index])
                stuck.add(index)
        return stuck

    def _serving(self, index: int) -> int:
        """The copy that has come furthest."""
        return max(range(self.copies.get(index, 0) + 1), key=lambda copy: self._head(index, copy)[0])

    def _why_stuck(self, stuck: set[int]) -> str:
        """Why a study cannot go on; nothing if it can."""
        store, study = self.curator.store, self.site.study
        if not {self.names[index] for index in stuck} <= store.enrolled(study.digest()):
            return STUCK_ENROLLING
        if len(stuck | set(self.lost)) > study.may_lose:
            return STUCK_TOO_MANY
        query = store.unanswered(study.digest())
        return STUCK_SUM if query is not None and any(self._blocks(index, query) for index in stuck) else ""

    def _blocks(self, index: int, query: OpenQuery) -> bool:
        """Whether a sum was opened with the party while it was there and not lost, and has no answer of it."""
        step = plan_study(self.site.study).step(query.label)
        if step.kind.is_local or self.names[index] in self.curator.store.submitters(
            self.site.study.digest(), query.label
        ):
            return False
        name = self.names[index]
        was_here = query.opened - self.heard.get(name, START) <= HERE_SECONDS + 1 and name not in self.answered
        return was_here and query.label in self.lost.get(index, {query.label})

    def _all_know(self, stuck: set[int]) -> bool:
        store, study = self.curator.store, self.site.study.digest()
        return all(store.acknowledged(study, name) for index, name in enumerate(self.names) if index not in stuck) and (
            store.study(study).outcome is not None
        )

    def _progress(self) -> object:
        store, study = self.curator.store, self.site.study
        labels = [step.label for step in plan_study(study).steps]
        answered = [(self._is_opened(label), len(store.submitters(study.digest(), label))) for label in labels]
        known = [store.acknowledged(study.digest(), name) for name in self.names]
        return self.curator.state(), store.enrolled(study.digest()), answered, known, self._losses()

    def _losses(self) -> set[str]:
        return {loss.party for loss in self.curator.store.losses(self.site.study.digest())}

    def _is_opened(self, label: str) -> bool:
        return self.curator.store.is_logged(self.site.study.digest(), label)

    def _home(self, index: int, copy: int = 0) -> Path:
        return self.settings(index, copy).state.parent

    def _head(self, index: int, copy: int = 0) -> tuple[int, bytes]:
        with self.ledger(index, copy) as ledger:
            head = ledger.head()
            return head.sequence, head.hash
