"""A caller that opens calls without end, against a real curator: it gets its quota, and others notice nothing."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench.crowd import add_ended
from synod.common.crypto.authority import issue_certificate
from synod.common.crypto.certificates import Holder, Role, read_tls
from synod.common.crypto.identity import Identity
from synod.common.runtime.settings import TlsFiles
from synod.common.runtime.wire import open_channel
from synod.curator.callers.quotas import MOST_CALLS_OF_A_NAME
from synod.curator.store import Store
from synod.curator.study_handler import MOST_LISTED
from synod.party.approval import identity_path
from synod.party.client import CuratorClient
from synod.party.ledger import Ledger
from synod.v1 import party_pb2 as pb
from synod.v1 import party_pb2_grpc as rpc
from tests.support.commands import synod
from tests.support.daemons import Site, make_site, until

CALLS = 4 * MOST_CALLS_OF_A_NAME
CALL_SECONDS = 30.0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A curator that serves one study; no party runs."""
    site = make_site(tmp_path_factory.mktemp("served"))
    try:
        site.start_curator()
        site.submit()
        yield site
    finally:
        site.stop_all()


def test_a_status_without_a_name_lists_what_fits_and_says_how_many_more(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    with closing(Store(site.paths.folder / "curator")) as store:
        add_ended(store, site.study, 2 * MOST_LISTED)
    try:
        site.start_curator()
        site.submit()
        ended = synod("study", "status", "--config", site.paths.operator_config)
        listed = json.loads(synod("study", "status", "--json", "--config", site.paths.operator_config).out)
    finally:
        site.stop_all()
    *shown, last = [line for line in ended.out.splitlines() if not line.startswith(" ")]
    names = [site.study.name, *(f"ended-{number}" for number in reversed(range(2 * MOST_LISTED)))]
    assert [line.partition(":")[0] for line in shown] == names[:MOST_LISTED]
    assert last == f"{MOST_LISTED + 1} older studies are not listed: name one, or see all of them with --json."
    assert [status["name"] for status in listed] == names


def channel_of(site: Site, name: str) -> grpc.Channel:
    certs = site.paths.certs
    files = TlsFiles(ca=certs / "ca.pem", certificate=certs / f"{name}.pem", key=certs / f"{name}.key")
    return open_channel(site.settings("north").address, read_tls(files), proxy=None)


def poll(channel: grpc.Channel, study_hash: bytes) -> Any:
    request = pb.PullWorkRequest(wait_seconds=60, skip=[study_hash])
    return rpc.PartyServiceStub(channel).PullWork.future(request, timeout=CALL_SECONDS)


def watch(channel: grpc.Channel, _: bytes) -> Any:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    return stub.Watch(health_pb2.HealthCheckRequest(), timeout=CALL_SECONDS)


def greet(site: Site, name: str) -> str:
    settings = site.settings(name)
    ledger = Ledger.open(settings.state)
    with closing(CuratorClient(settings, Identity.load(identity_path(settings)))) as client:
        head = ledger.head()
        ledger.close()
        return client.greet(head).protocol


@pytest.mark.parametrize("call", [poll, watch])
def test_open_calls_of_one_name_are_few_and_others_are_served(served: Site, call: Any) -> None:
    with ExitStack() as channels:
        opened = [
            call(channels.enter_context(closing(channel_of(served, "valley"))), served.study.digest())
            for _ in range(CALLS)
        ]
        refused = until(
            "the calls over the quota are refused",
            lambda: (
                (ended := [one for one in opened if one.done()])
                and len(ended) >= CALLS - MOST_CALLS_OF_A_NAME
                and ended
            ),
        )
        assert len(refused) == CALLS - MOST_CALLS_OF_A_NAME
        assert {one.code() for one in refused} == {grpc.StatusCode.UNAVAILABLE}
        told = "the curator has as many calls open as it takes from the party valley."
        assert {one.details() for one in refused} == {told}
        assert greet(served, "north") == "synod/v1"
        assert served.status().name == served.study.name
        for one in opened:
            one.cancel()
    until("the calls that ended are counted no more", lambda: is_served(served, "valley"))


def test_a_connection_has_a_few_calls_at_once_and_the_others_wait_at_the_caller(served: Site) -> None:
    """What was not sent costs the curator nothing, and is not refused either."""
    with closing(channel_of(served, "valley")) as channel:
        stub = rpc.PartyServiceStub(channel)
        stub.PullWork(pb.PullWorkRequest(), timeout=CALL_SECONDS)  # now the caller knows the limit
        opened = [poll(channel, served.study.digest()) for _ in range(MOST_CALLS_OF_A_NAME)]
        with pytest.raises(grpc.RpcError) as caught:
            stub.PullWork(pb.PullWorkRequest(), timeout=1)
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        assert not any(one.done() for one in opened)
        assert greet(served, "north") == "synod/v1"
        for one in opened:
            one.cancel()
    until("the calls that ended are counted no more", lambda: is_served(served, "valley"))


def is_served(site: Site, name: str) -> bool:
    with closing(channel_of(site, name)) as channel:
        try:
            rpc.PartyServiceStub(channel).PullWork(pb.PullWorkRequest(), timeout=CALL_SECONDS)
        except grpc.RpcError:
            return False
    return True


def test_of_a_stranger_no_upload_is_read(served: Site) -> None:
    """Its certificate is sound, and it waits for a first study like any new party's."""
    issue_certificate(served.paths.certs, Holder(Role.PARTY, "ghost"), [], now=datetime.now(UTC))

    def parts() -> Iterator[pb.SubmitRequest]:
        yield pb.SubmitRequest(header=pb.SubmissionHeader())

    with closing(channel_of(served, "ghost")) as channel:
        stub = rpc.PartyServiceStub(channel)
        assert list(stub.PullWork(pb.PullWorkRequest(), timeout=CALL_SECONDS).moves) == []
        with pytest.raises(grpc.RpcError) as caught:
            stub.Submit(parts(), timeout=CALL_SECONDS)
        assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
        assert caught.value.details() == "ghost is on no roster of this curator."
