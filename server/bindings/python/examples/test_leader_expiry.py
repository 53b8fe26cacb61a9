"""My leader steps down on expiry. `docs/testing/leader-expiry.md` explains it."""

import threading

import pytest
from kazoo.client import KazooClient, KazooState

WITHIN_S = 30  # a bound for when something is wrong; nothing here takes that long


class Biller:
    """What is tested: works for as long as it leads. An `Election` of kazoo does not see to the end of that by itself."""

    def __init__(self, client):
        self.leads, self.must_stop, self.has_stopped = (threading.Event() for _ in range(3))
        self.client, self.election = client, client.Election("/leaders/billing")
        client.add_listener(self.on_state)
        self.thread = threading.Thread(target=self.election.run, args=[self.work], daemon=True)
        self.thread.start()

    def on_state(self, state):
        # Without a connection it cannot know, so it does not wait for LOST: another one may lead by then.
        if state != KazooState.CONNECTED and self.leads.is_set():
            self.must_stop.set()

    def work(self):
        self.leads.set()
        if self.client.state != KazooState.CONNECTED:
            self.must_stop.set()  # `on_state` was called too early to see that it leads
        self.must_stop.wait()  # here it would send a bill now and then
        self.has_stopped.set()

    def close(self):
        self.election.cancel()
        self.must_stop.set()
        self.thread.join(WITHIN_S)


@pytest.fixture
def start_biller(minikeeper):
    billers = []

    def start_biller():
        client = KazooClient(minikeeper.connect_string)
        client.start()
        billers.append(Biller(client))
        return billers[-1]

    yield start_biller
    for biller in billers:
        biller.close()
        biller.client.stop()
        biller.client.close()


def test_leader_steps_down_when_its_session_expires(minikeeper, start_biller):
    first = start_biller()
    assert first.leads.wait(WITHIN_S)
    second = start_biller()
    minikeeper.until_contenders("/leaders/billing", 2)
    assert not second.leads.is_set()

    # On the server, as if nothing had been heard of it for too long. Its znode is gone when this returns.
    assert minikeeper.expire(first.client) == 1

    assert first.has_stopped.wait(WITHIN_S)
    assert second.leads.wait(WITHIN_S)
    assert not second.has_stopped.is_set()
    assert len(minikeeper.children("/leaders/billing")) == 1


def test_leader_that_leaves_is_followed(minikeeper, start_biller):
    first = start_biller()
    assert first.leads.wait(WITHIN_S)
    second = start_biller()
    minikeeper.until_contenders("/leaders/billing", 2)

    first.close()

    assert second.leads.wait(WITHIN_S)
