"""Compares the protos with those that last landed, and names every change that an older daemon could not read.

Usage: python proto/breaking.py LANDED CURRENT, two sets of file descriptors as protoc writes them. Exit code 1 if a
message, field, enum value, service or method was removed, renumbered or changed its type. A field or value may go if
its number and its name are reserved.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
)


def read_set(path: Path) -> FileDescriptorSet:
    """A set of file descriptors."""
    found = FileDescriptorSet()
    found.ParseFromString(path.read_bytes())
    return found


def messages_of(files: FileDescriptorSet) -> dict[str, DescriptorProto]:
    """All messages by full name, nested ones included."""

    def walk(prefix: str, messages: Iterator[DescriptorProto]) -> Iterator[tuple[str, DescriptorProto]]:
        for message in messages:
            name = f"{prefix}.{message.name}"
            yield name, message
            yield from walk(name, iter(message.nested_type))

    return {name: message for file in files.file for name, message in walk(file.package, iter(file.message_type))}


def enums_of(files: FileDescriptorSet) -> dict[str, EnumDescriptorProto]:
    """All enums by full name."""
    found = {f"{file.package}.{enum.name}": enum for file in files.file for enum in file.enum_type}
    for name, message in messages_of(files).items():
        found |= {f"{name}.{enum.name}": enum for enum in message.enum_type}
    return found


def methods_of(files: FileDescriptorSet) -> dict[str, MethodDescriptorProto]:
    """All methods by full name."""
    return {
        f"{file.package}.{service.name}.{method.name}": method
        for file in files.file
        for service in file.service
        for method in service.method
    }


def find_breaks(landed: FileDescriptorSet, current: FileDescriptorSet) -> list[str]:
    """One sentence for each change that breaks an older reader."""
    breaks: list[str] = []
    messages, enums, methods = messages_of(current), enums_of(current), methods_of(current)
    for name, message in messages_of(landed).items():
        if name not in messages:
            breaks.append(f"the message {name} is gone")
        else:
            breaks += _compare_fields(name, message, messages[name])
    for name, enum in enums_of(landed).items():
        if name not in enums:
            breaks.append(f"the enum {name} is gone")
        else:
            breaks += _compare_values(name, enum, enums[name])
    for name, method in methods_of(landed).items():
        if name not in methods:
            breaks.append(f"the method {name} is gone")
        elif _signature(method) != _signature(methods[name]):
            breaks.append(f"the method {name} takes or returns something else")
    return breaks


def _signature(method: MethodDescriptorProto) -> tuple[str, str, bool, bool]:
    return method.input_type, method.output_type, method.client_streaming, method.server_streaming


def _compare_fields(name: str, landed: DescriptorProto, current: DescriptorProto) -> Iterator[str]:
    fields = {field.number: field for field in current.field}
    reserved = {number for span in current.reserved_range for number in range(span.start, span.end)}
    for field in landed.field:
        now = fields.get(field.number)
        if now is None:
            if field.number not in reserved or field.name not in current.reserved_name:
                yield f"the field {name}.{field.name} is gone and not reserved"
        elif _shape(field, landed) != _shape(now, current):
            yield f"the field {name}.{field.name} has another name, type or label"


def _shape(field: FieldDescriptorProto, message: DescriptorProto) -> tuple[str, int, str, int, str]:
    choice = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
    return field.name, field.type, field.type_name, field.label, choice


def _compare_values(name: str, landed: EnumDescriptorProto, current: EnumDescriptorProto) -> Iterator[str]:
    values = {value.number: value.name for value in current.value}
    reserved = {number for span in current.reserved_range for number in range(span.start, span.end + 1)}
    for value in landed.value:
        if values.get(value.number) == value.name:
            continue
        gone = value.number not in values and value.number in reserved and value.name in current.reserved_name
        if not gone:
            yield f"the value {value.name} of {name} is gone, renamed or renumbered"


def main() -> None:
    """Prints what breaks."""
    landed, current = (read_set(Path(argument)) for argument in sys.argv[1:3])
    breaks = find_breaks(landed, current)
    for sentence in breaks:
        sys.stderr.write(f"proto: {sentence}.\n")
    if breaks:
        sys.stderr.write(
            "Older daemons cannot read this. Add instead of changing; `make land-protos` is for a release.\n"
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
