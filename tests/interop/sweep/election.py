"""Candidates for leadership, by a sequential ephemeral with a UUID."""

import time
import uuid

from client import LOST, delete

ELECTION = "/election"


class Candidate:
    """A client that can lead. The parent of its znode exists."""

    def __init__(self, zk):
        self.zk = zk
        self.path = None
        self.join()

    def join(self):
        """Creates the znode, or finds it after a lost reply."""
        name = f"{uuid.uuid4()}-"
        self.path = None
        while not self.path:
            try:
                self.path = self.zk.create(f"{ELECTION}/{name}", ephemeral=True, sequence=True)
                return
            except LOST:
                time.sleep(0.01)
            for child in self.children():
                if child.startswith(name):
                    self.path = f"{ELECTION}/{child}"

    def children(self):
        """Returns the names of the candidates, the leader's first."""
        return sorted(self.zk.retry(self.zk.get_children, ELECTION), key=lambda name: name[-10:])

    def is_first(self):
        """Asks the server whether this is the leader. Joins again if the session has expired."""
        children = self.children()
        while f"{ELECTION}/{children[0]}" != self.path if children else True:
            if any(f"{ELECTION}/{child}" == self.path for child in children):
                return False
            self.join()
            children = self.children()
        return True

    def epoch(self):
        """Returns a number that grows with each leader."""
        return int(self.path[-10:])

    def resign(self):
        delete(self.zk, self.path)
