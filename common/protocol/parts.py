"""Large messages in parts: halves of their longest repeated field, which merge to the whole when read in order."""

from collections.abc import Iterator
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor
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
    fields = message.ListFields()
    if len(fields) > 1:
        fields = sorted(fields, key=lambda field: -_size(message, *field))
    for field, value in fields:
        halves = _halve_value(message, field, value)
        if halves is not None:
            first, second = halves
            for other, content in fields:
                if other is not field:
                    _copy(first, other, content)
            return first, second
    return None


def _halve_value(message: MessageT, field: FieldDescriptor, value: Any) -> tuple[MessageT, MessageT] | None:
    first, second = type(message)(), type(message)()
    if field.is_repeated:
        middle = len(value) // 2
        if not middle:
            return None
        _copy(first, field, value[:middle])
        _copy(second, field, value[middle:])
        return first, second
    if field.message_type is None or (inner := _halve(value)) is None:
        return None
    _copy(first, field, inner[0])
    _copy(second, field, inner[1])
    return first, second


def _copy(target: Message, field: FieldDescriptor, value: Any) -> None:
    if field.is_repeated:
        getattr(target, field.name).extend(value)
    elif field.message_type is not None:
        getattr(target, field.name).CopyFrom(value)
    else:
        setattr(target, field.name, value)


def _size(message: Message, field: FieldDescriptor, value: Any) -> int:
    alone = type(message)()
    _copy(alone, field, value)
    return alone.ByteSize()
