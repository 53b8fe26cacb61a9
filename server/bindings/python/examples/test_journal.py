"""What a job has sent to the server. `docs/journal.md` explains it."""

from kazoo.client import KazooClient


def test_job_stores_its_result_under_its_lock(minikeeper):
    client = KazooClient(minikeeper.connect_string)
    client.start()

    run_job(client)

    minikeeper.verify(path="/locks/job/*", op="create", result="OK", exactly=1)
    minikeeper.verify(path="/results/*", op="setData", exactly=0)  # results are never overwritten
    minikeeper.verify(
        in_order=["create /locks/job/* -> OK", "create /results/* -> OK", "delete /locks/job/* -> OK"]
    )
    client.stop()
    client.close()


def run_job(client):
    """The code under test."""
    with client.Lock("/locks/job"):
        client.create("/results/42", b"done", makepath=True)
