"""kazoo's lock, as a sweep in pytest that is measured."""

import pytest


@pytest.mark.minikeeper_sweep
def test_lock(kazoo_client):
    with kazoo_client.Lock("/lock"):
        pass
