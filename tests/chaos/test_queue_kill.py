"""A worker killed with an item in its hands: the item goes to one other worker, once, and the attempt counts."""

import json
import sys
from pathlib import Path

from tests.chaos.test_kill import QUICK
from tests.cli.nodes import serving
from tests.kit.processes import program

WORKER = """
import json, sys, urllib.request
body = json.dumps({"worker_id": "doomed", "queue": "mail", "lease_sec": 1}).encode()
request = urllib.request.Request(sys.argv[1] + "/scheduler/jobs/pull", body, {"Content-Type": "application/json"})
print("holds", json.loads(urllib.request.urlopen(request).read())["jobs"][0]["lease_token"], flush=True)
sys.stdin.read()
"""


async def test_what_a_killed_worker_held_goes_to_one_other_and_the_attempt_counts(tmp_path: Path) -> None:
    async with serving(tmp_path, "--log-level", "info", environment=QUICK) as node:
        _, made = await node.call("POST", "/scheduler/jobs", {"queue": "mail", "payload": 7})
        async with program(sys.executable, "-c", WORKER, node.url, directory=tmp_path) as worker:
            token = (await worker.line(r"holds (\S+)"))[1]
            await worker.kill()
        again = {"worker_id": "heir", "queue": "mail", "wait_sec": 20}
        _, pulled = await node.call("POST", "/scheduler/jobs/pull", again)
        [job] = pulled["jobs"]
        assert (job["job_id"], job["attempt"], job["worker_id"]) == (made["job_id"], 1, "heir")
        assert job["last_error"] == "doomed did not answer before its lease ended"
        _, rest = await node.call("POST", "/scheduler/jobs/pull", {"worker_id": "third", "queue": "mail"})
        assert rest["jobs"] == []
        late, refusal = await node.call("POST", f"/scheduler/jobs/{made['job_id']}/ack", {"lease_token": token})
        assert (late, refusal["code"]) == (409, "STALE_LEASE")
        status, done = await node.call(
            "POST", f"/scheduler/jobs/{made['job_id']}/ack", {"lease_token": job["lease_token"]}
        )
        assert (status, done["status"], done["attempt"]) == (200, "succeeded", 1)
    assert not [line for line in map(json.loads, node.process.output.splitlines()) if line["level"] == "ERROR"]
