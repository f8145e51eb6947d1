"""What can happen to a study in a simulation: each operation is a value, so that a list of them can be kept."""

from dataclasses import dataclass

from tests.support.simulation import World


@dataclass(frozen=True)
class Talk:
    """A party connects and makes its moves; one of its calls may fail."""

    party: int
    fault: str = ""
    call: int = 0

    def happen(self, world: World) -> None:
        world.converse(self.party, self.fault, self.call)


@dataclass(frozen=True)
class KillParty:
    """A party connects, and dies at one of its ledger's next commits."""

    party: int
    when: str
    commits: int = 0

    def happen(self, world: World) -> None:
        world.kill_party.when, world.kill_party.commits = self.when, self.commits
        world.converse(self.party)


@dataclass(frozen=True)
class RestartParty:
    party: int

    def happen(self, world: World) -> None:
        world.stop_party(self.party)


@dataclass(frozen=True)
class KillCurator:
    """The curator dies at one of its store's next commits."""

    when: str
    commits: int

    def happen(self, world: World) -> None:
        world.kill_curator.when, world.kill_curator.commits = self.when, self.commits


@dataclass(frozen=True)
class RestartCurator:
    def happen(self, world: World) -> None:
        world.restart_curator()


@dataclass(frozen=True)
class SetClock:
    who: str
    seconds: int

    def happen(self, world: World) -> None:
        world.skews[self.who] = self.seconds


@dataclass(frozen=True)
class DeliverLate:
    """A delayed message comes in at last."""

    number: int

    def happen(self, world: World) -> None:
        if world.delayed:
            world.deliver_again(world.delayed.pop(self.number % len(world.delayed)))


@dataclass(frozen=True)
class Replay:
    """A message from the past comes in once more."""

    number: int

    def happen(self, world: World) -> None:
        if world.sent:
            world.deliver_again(world.sent[self.number % len(world.sent)])


Operation = Talk | KillParty | RestartParty | KillCurator | RestartCurator | SetClock | DeliverLate | Replay
