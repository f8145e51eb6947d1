"""Changes to the protos that an older daemon could not read are named; additions are not."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet

from synod.v1 import party_pb2, query_pb2, study_pb2

ROOT = Path(__file__).resolve().parents[2]
Change = Callable[[FileDescriptorSet], object]


@pytest.fixture(scope="module")
def breaking() -> ModuleType:
    """proto/ is not importable by name; see docs/development.md."""
    spec = importlib.util.spec_from_file_location("breaking", ROOT / "proto" / "breaking.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def current() -> FileDescriptorSet:
    files = FileDescriptorSet()
    for module in (party_pb2, query_pb2, study_pb2):
        module.DESCRIPTOR.CopyToProto(files.file.add())
    return files


def message(files: FileDescriptorSet, name: str) -> DescriptorProto:
    return next(one for file in files.file for one in file.message_type if one.name == name)


def drop_field(files: FileDescriptorSet, *, reserve: bool) -> None:
    header = message(files, "SubmissionHeader")
    gone = header.field.pop(0)
    if reserve:
        header.reserved_name.append(gone.name)
        header.reserved_range.add(start=gone.number, end=gone.number + 1)


def test_what_landed_can_still_be_read(breaking: ModuleType) -> None:
    landed = breaking.read_set(ROOT / "proto" / "landed.binpb")
    assert len(breaking.messages_of(landed)) > 30
    assert breaking.find_breaks(landed, current()) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda f: drop_field(f, reserve=False), "SubmissionHeader.study_hash is gone"),
        (lambda f: setattr(message(f, "LedgerHead").field[0], "number", 77), "LedgerHead.sequence is gone"),
        (lambda f: setattr(message(f, "LedgerHead").field[0], "type", 5), "LedgerHead.sequence has another"),
        (lambda f: setattr(message(f, "LedgerHead").field[0], "name", "length"), "LedgerHead.sequence has another"),
        (lambda f: setattr(message(f, "FeatureSet").field[0], "label", 1), "FeatureSet.features has another"),
        (lambda f: setattr(message(f, "Choice"), "name", "Draw"), "message synod.v1.Choice is gone"),
        (lambda f: f.file[0].service[0].method.pop(0), "PartyService.Greet is gone"),
        (lambda f: setattr(f.file[0].service[0].method[0], "server_streaming", True), "PartyService.Greet takes"),
        (lambda f: f.file[0].enum_type[0].value.pop(1), "MOVE_KIND_ENROL of synod.v1.MoveKind is gone"),
        (lambda f: f.file[1].enum_type.pop(0), "enum synod.v1.Score is gone"),
    ],
)
def test_what_breaks_is_named(breaking: ModuleType, change: Change, told: str) -> None:
    changed = current()
    change(changed)
    assert any(told in sentence for sentence in breaking.find_breaks(current(), changed))


@pytest.mark.parametrize(
    "change",
    [
        lambda f: drop_field(f, reserve=True),
        lambda f: message(f, "LedgerHead").field.add(name="more", number=99, type=5, label=1),
        lambda f: f.file[0].message_type.add(name="New"),
        lambda f: f.file[0].enum_type[0].value.add(name="MOVE_KIND_NEW", number=99),
    ],
)
def test_additions_and_reserved_fields_break_nothing(breaking: ModuleType, change: Change) -> None:
    changed = current()
    change(changed)
    assert breaking.find_breaks(current(), changed) == []
