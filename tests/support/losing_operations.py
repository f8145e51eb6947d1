"""Operations that only happen to studies that may lose parties."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.operations import Operation
from tests.support.troubled_world import TroubledWorld


@dataclass(frozen=True)
class TalkAsCopy:
    """The newest copy of a party connects and makes its moves."""

    party: int
    fault: str = ""
    call: int = 0

    def happen(self, world: TroubledWorld) -> None:
        if copy := world.copies.get(self.party, 0):
            world.converse(self.party, self.fault, self.call, copy)


@dataclass(frozen=True)
class CopyParty:
    party: int

    def happen(self, world: TroubledWorld) -> None:
        world.copy_party(self.party)


@dataclass(frozen=True)
class BackUp:
    party: int

    def happen(self, world: TroubledWorld) -> None:
        world.back_up(self.party)


@dataclass(frozen=True)
class RestoreOld:
    party: int
    number: int

    def happen(self, world: TroubledWorld) -> None:
        world.restore(self.party, self.number)


@dataclass(frozen=True)
class Vanish:
    """A party is killed for good."""

    party: int

    def happen(self, world: TroubledWorld) -> None:
        world.vanish(self.party)


@dataclass(frozen=True)
class Lose:
    """The operator declares a party lost, whether it is gone or not."""

    party: int

    def happen(self, world: TroubledWorld) -> None:
        world.lose(self.party)


@dataclass(frozen=True)
class Wait:
    """Nobody calls for a while."""

    seconds: int = 120

    def happen(self, world: TroubledWorld) -> None:
        world.now += self.seconds


AnyOperation = Operation | TalkAsCopy | CopyParty | BackUp | RestoreOld | Vanish | Lose | Wait
Operations = Sequence[AnyOperation]
