"""Large messages in parts: halves of their longest repeated field, which merge to the whole when read in order."""

from collections.abc import Iterator
from typing import TypeVar

from google.protobuf.message import Message

MessageT = TypeVar("MessageT", bound=Message)


def split_message(message: MessageT, most_bytes: int) -> Iterator[MessageT]:
    """Parts of at most `most_bytes` each, as far as single entries allow; their merge in order is the message."""
    if message.ByteSize() <= most_bytes:
        yield message
        return
    halves = _halve(message)
    if halves is None:
        yield message
        return
    for half in halves:
        yield from split_message(half, most_bytes)


def _halve(message: MessageT) -> tuple[MessageT, MessageT] | None:
    """The message without the second half of its largest field, and that half alone."""
    fields = sorted(message.ListFields(), key=lambda field: -_bytes_of(message, field[0].name))
    for field, value in fields:
        first, second = type(message)(), type(message)()
        first.CopyFrom(message)
        if field.is_repeated:
            if len(value) < 2:
                continue
            middle = len(value) // 2
            first.ClearField(field.name)
            getattr(first, field.name).extend(value[:middle])
            getattr(second, field.name).extend(value[middle:])
            return first, second
        if field.message_type is not None and (inner := _halve(value)) is not None:
            getattr(first, field.name).CopyFrom(inner[0])
            getattr(second, field.name).CopyFrom(inner[1])
            return first, second
    return None


def _bytes_of(message: Message, name: str) -> int:
    alone = type(message)()
    alone.CopyFrom(message)
    alone.ClearField(name)
    return message.ByteSize() - alone.ByteSize()
