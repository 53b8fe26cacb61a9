"""My leader steps down on expiry. `docs/testing/leader-expiry.md` explains it."""

import threading

import pytest
from kazoo.client import KazooClient, KazooState

WITHIN_S = 30  # a limit for failures; nothing here takes that long


class Biller:
    """The code under test: works while it leads. kazoo's `Election` does not stop the work when leadership ends."""

    def __init__(self, client):
        self.leads, self.must_stop, self.has_stopped = (threading.Event() for _ in range(3))
        self.client, self.election = client, client.Election("/leaders/billing")
        client.add_listener(self.on_state)
        self.thread = threading.Thread(target=self.election.run, args=[self.work], daemon=True)
        self.thread.start()

    def on_state(self, state):
        # Without a connection it cannot know whether it leads. It does not wait for LOST: by then, another may lead.
        if state != KazooState.CONNECTED and self.leads.is_set():
            self.must_stop.set()

    def work(self):
        self.leads.set()
        if self.client.state != KazooState.CONNECTED:
            self.must_stop.set()  # `on_state` was called before `leads` was set
        self.must_stop.wait()  # a real one would send bills here
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

    # The server ends the session, as after a long silence. The znode has been deleted when this returns.
    assert minikeeper.expire(first.client) == 1

    assert first.has_stopped.wait(WITHIN_S)
    assert second.leads.wait(WITHIN_S)
    assert not second.has_stopped.is_set()
    assert len(minikeeper.children("/leaders/billing")) == 1


def test_second_leads_when_the_first_leaves(minikeeper, start_biller):
    first = start_biller()
    assert first.leads.wait(WITHIN_S)
    second = start_biller()
    minikeeper.until_contenders("/leaders/billing", 2)

    first.close()

    assert second.leads.wait(WITHIN_S)
