"""The statements of the SQL family, named, with one line of purpose. Those of items, of what governs them and of walks
through whole tables have files of their own.

`:name` is a value, `IN (:name*)` a list of values, `{word}` the dialect's spelling.
"""

from __future__ import annotations

from typing import NamedTuple

from ksana.stores.sql.tables import ATTEMPTS, CURSORS, DUE_COLUMNS, RUNS, Table


class Statement(NamedTuple):
    """SQL with named values. A query for rows by the hundred says which columns it selects, in order."""

    text: str
    selects: Table | None = None


_RUN = ", ".join(RUNS.names)
JOB_COLUMNS = "j.id, j.definition, j.version, c.next_slot_at, c.next_fire_at"
JOB_SOURCE = "FROM ksana_jobs j JOIN ksana_cursors c ON c.job_id = j.id"
ATTEMPT_COLUMNS = ", ".join([*(f"a.{name}" for name in ATTEMPTS.names), "e.head, e.request_body, e.response_body"])
ATTEMPT_SOURCE = "FROM ksana_attempts a LEFT JOIN ksana_exchanges e ON e.run_id = a.run_id AND e.epoch = a.epoch"
LAST_ATTEMPT_COLUMNS = "r.id, r.last_attempt, e.head, e.request_body, e.response_body"
_IF_SMALL = "CASE WHEN LENGTH(e.request_body) + LENGTH(e.response_body) <= :most_bytes THEN e."
_SMALL_BODIES = f"e.head, {_IF_SMALL}request_body END, {_IF_SMALL}response_body END"
LAST_ATTEMPT_SOURCE = "FROM ksana_runs r LEFT JOIN ksana_exchanges e ON e.run_id = r.id AND e.epoch = r.epoch - 1"

PING = Statement("SELECT 1")

# Ids and identity

ADVANCE_SEQUENCE = Statement("UPDATE ksana_sequences SET next_id = next_id + :count WHERE name = :name")
READ_SEQUENCE = Statement("SELECT next_id FROM ksana_sequences WHERE name = :name")
READ_IDENTITY = Statement("SELECT value FROM ksana_identity WHERE one = 1")

# Jobs

JOBS_BY_ID = Statement(f"SELECT {JOB_COLUMNS} {JOB_SOURCE} WHERE j.id IN (:ids*)")
LOCK_CURSORS = Statement(
    "SELECT job_id, version, slot_limit, next_slot_at FROM ksana_cursors {by_key} WHERE job_id IN (:ids*)"
    " ORDER BY job_id {for_update}"
)
JOB_VERSIONS = Statement("SELECT job_id, version FROM ksana_cursors WHERE job_id IN (:ids*)")
DROP_TAGS = Statement("DELETE FROM ksana_tags WHERE job_id IN (:ids*)")

# Firing

_CURSOR = ", ".join(CURSORS.names)
DUE_CURSORS = Statement(
    f"SELECT {_CURSOR} FROM ksana_cursors {{by_due}} WHERE next_fire_at <= :now"
    " ORDER BY next_fire_at, job_id LIMIT :limit {skip_locked}",
    CURSORS,
)
BURSTS = Statement(
    "SELECT next_fire_at, COUNT(*) FROM ksana_cursors {by_due} WHERE next_fire_at > :after AND next_fire_at <= :until"
    " GROUP BY next_fire_at HAVING COUNT(*) >= :least ORDER BY next_fire_at"
)
COMING_CURSORS = Statement(
    f"SELECT {_CURSOR} FROM ksana_cursors {{by_due}} WHERE next_fire_at = :at AND job_id > :after_id"
    " ORDER BY job_id LIMIT :limit",
    CURSORS,
)
STANDING_CURSORS = Statement(
    f"SELECT {_CURSOR} FROM ksana_cursors {{by_key}} WHERE job_id IN (:ids*) ORDER BY job_id {{skip_locked}}", CURSORS
)
MOVE_CURSORS = Statement(
    "UPDATE ksana_cursors {by_key} SET next_slot_at = :next_slot_at, next_fire_at = :next_fire_at"
    " WHERE job_id IN (:ids*)"
)
NEXT_FIRE = Statement(
    "SELECT next_fire_at FROM ksana_cursors WHERE next_fire_at IS NOT NULL ORDER BY next_fire_at LIMIT 1"
)
PAUSES = Statement(
    "SELECT id, resumes_at FROM ksana_jobs WHERE resumes_at IS NOT NULL ORDER BY resumes_at, id LIMIT :limit"
)
ACTIVE_RUNS = Statement(
    "SELECT job_id, COUNT(*) FROM ksana_runs {by_live} WHERE job_id IN (:ids*) AND ended_at IS NULL"
    " AND made_by <> 'apart' GROUP BY job_id"
)
RUNS_PRESENT = Statement("SELECT id FROM ksana_runs WHERE id IN (:ids*)")

# Turns: moving and claiming

RUNS_AT_EPOCH = Statement(
    "SELECT id FROM ksana_runs {by_key} WHERE id IN (:ids*) AND epoch = :epoch {for_update}", RUNS.only("id")
)
MOVE_RUNS = Statement(
    "UPDATE ksana_runs {by_key} SET state = :state, reason = :reason, epoch = :epoch + 1, failures = :failures,"
    " reclaims = :reclaims, due_at = COALESCE(:due_at, due_at), deadline_at = :deadline_at, node_id = NULL,"
    " started_at = COALESCE(started_at, :began_at), ended_at = :ended_at, error = :error"
    " WHERE id IN (:ids*) AND epoch = :epoch {returning_id}"
)
_ENDED = (
    "state = :state, reason = :reason, epoch = :epoch + 1, failures = :failures, reclaims = :reclaims,"
    " deadline_at = NULL, node_id = NULL, ended_at = :ended_at, error = :error"
)
END_RUNS = Statement(
    f"UPDATE ksana_runs SET {_ENDED}, last_attempt = told.value FROM {{each_told}}"
    " WHERE ksana_runs.id = {told_id} AND epoch = :epoch"
)
END_RUN = Statement(
    # The same for one run, found by its key.
    f"UPDATE ksana_runs SET {_ENDED}, last_attempt = :told WHERE id = :run_id AND epoch = :epoch"
)
END_LOCKED_RUNS = Statement(f" ON DUPLICATE KEY UPDATE {_ENDED}, last_attempt = VALUES(last_attempt)")
ENDED_AS_TOLD = Statement(
    # What is told names node, epoch and instants, so a row that says the same was ended by this very attempt.
    "SELECT ksana_runs.id FROM {each_told}, ksana_runs WHERE ksana_runs.id = {told_id} AND epoch = :epoch + 1"
    " AND last_attempt = told.value"
)
LAST_ATTEMPTS_OF_RUNS = Statement(
    f"SELECT {LAST_ATTEMPT_COLUMNS} {LAST_ATTEMPT_SOURCE} WHERE r.id IN (:ids*) AND r.last_attempt IS NOT NULL"
)
FORGET_LAST_ATTEMPTS = Statement("UPDATE ksana_runs {by_key} SET last_attempt = NULL WHERE id IN (:ids*)")
DUE_RUNS = Statement(
    f"SELECT {', '.join(DUE_COLUMNS.names)} FROM ksana_runs {{by_ready}} WHERE {{ready}} AND queue = :queue"
    " AND priority = :priority AND due_at <= :now ORDER BY due_at, id LIMIT :limit {skip_locked}",
    DUE_COLUMNS,
)
CLAIM_RUNS = Statement(
    "UPDATE ksana_runs {by_key} SET state = 'RUNNING', reason = NULL, epoch = epoch + 1, attempt = attempt + 1,"
    " node_id = :node_id, deadline_at = NULL, error = '', started_at = COALESCE(started_at, :now) WHERE id IN (:ids*)"
)
_CLAIMED = ", ".join(f"due.{name}" for name in DUE_COLUMNS.names)
_DUE_AT_PRIORITY = (
    f"(SELECT {', '.join(DUE_COLUMNS.names)} FROM ksana_runs WHERE {{ready}} AND queue = :queue AND priority = %d"
    " AND due_at <= :now ORDER BY due_at, id LIMIT :limit {skip_locked})"
)
DUE_BY_PRIORITY = f"high AS {_DUE_AT_PRIORITY % 3}, normal AS {_DUE_AT_PRIORITY % 2}, low AS {_DUE_AT_PRIORITY % 1}"
CLAIM_BY_PRIORITY = (
    "UPDATE ksana_runs r SET state = 'RUNNING', reason = NULL, epoch = r.epoch + 1, attempt = r.attempt + 1,"
    " node_id = :node_id, deadline_at = NULL, error = '', started_at = COALESCE(r.started_at, :now)"
    " FROM (SELECT * FROM high UNION ALL SELECT * FROM normal UNION ALL SELECT * FROM low LIMIT :limit) due"
    " WHERE r.id = due.id"
)
RETURNING_CLAIMED = f"RETURNING {_CLAIMED}"
CLAIM_DUE = Statement(
    # The same in one step, where a database looks at the next priority only when the one before did not suffice.
    f"WITH {DUE_BY_PRIORITY} {CLAIM_BY_PRIORITY} {RETURNING_CLAIMED}"
)
NEXT_DUE = Statement(
    "SELECT due_at FROM ksana_runs WHERE {ready} AND queue = :queue AND priority = :priority ORDER BY due_at LIMIT 1"
)
WAITING_RUNS = Statement(
    # Locked, so that a run canceled at this moment is either seen as canceled or cannot be.
    "SELECT id FROM ksana_runs {by_live} WHERE job_id = :job_id AND ended_at IS NULL AND {waits}"
    # Ids come in blocks per node, so they do not tell who came first.
    " AND reason = 'slot' ORDER BY created_at, id LIMIT :limit {for_update}"
)
ADMIT_RUNS = Statement(
    "UPDATE ksana_runs {by_key} SET state = 'SCHEDULED', reason = NULL, epoch = epoch + 1 WHERE id IN (:ids*)"
)
HOLDING_RUNS = Statement(
    "SELECT job_id, COUNT(*) FROM ksana_runs {by_live} WHERE job_id IN (:ids*) AND ended_at IS NULL"
    " AND {holds} AND made_by <> 'apart' GROUP BY job_id"
)
WAITED_JOBS = Statement(
    "SELECT DISTINCT job_id FROM ksana_runs {by_live} WHERE job_id IN (:ids*) AND ended_at IS NULL"
    " AND {waits} AND reason = 'slot'"
)
ALL_WAITED_JOBS = Statement(
    "SELECT DISTINCT job_id FROM ksana_runs WHERE state = 'WAITING' AND reason = 'slot' AND ended_at IS NULL"
)
RUNS_TO_CANCEL = Statement(
    f"SELECT {_RUN} FROM ksana_runs {{by_live}} WHERE job_id = :job_id AND ended_at IS NULL AND state IN (:states*)"
    " {for_update}"
)
RESTING_RUNS_FOLLOW = Statement(
    "UPDATE ksana_runs {by_live} SET job_version = :version WHERE job_id = :job_id AND ended_at IS NULL"
    " AND state IN ('WAITING', 'SCHEDULED', 'RETRYING')"
)

# Families

LOCK_CHAINS = Statement(
    "SELECT run_id, stamp FROM ksana_chains {by_key} WHERE run_id IN (:ids*) ORDER BY run_id {for_update}"
)
SET_STAMPS = Statement("UPDATE ksana_chains {by_key} SET stamp = :stamp WHERE run_id IN (:ids*)")
STAMP_CHAINS = Statement(
    # Both at once, where a database can tell what a change found.
    "UPDATE ksana_chains c SET stamp = :stamp FROM (SELECT run_id, stamp FROM ksana_chains WHERE run_id IN (:ids*)"
    " ORDER BY run_id FOR UPDATE) old WHERE c.run_id = old.run_id RETURNING c.run_id, old.stamp"
)
REPLACE_STAMP = Statement(
    "UPDATE ksana_chains {by_key} SET stamp = :stamp WHERE run_id = :run_id AND stamp = :known_stamp"
)
CHILD_STATES = Statement("SELECT id, parent_id, state FROM ksana_runs WHERE parent_id IN (:ids*)")
CHILDREN = Statement(f"SELECT {_RUN} FROM ksana_runs WHERE parent_id = :parent_id ORDER BY id")
LOCK_CHILDREN = Statement(f"SELECT {_RUN} FROM ksana_runs WHERE parent_id = :parent_id ORDER BY id {{for_update}}")
LOCK_RUNS = Statement(f"SELECT {_RUN} FROM ksana_runs {{by_key}} WHERE id IN (:ids*) ORDER BY id {{for_update}}")
ADMIT_STEPS = Statement(
    "UPDATE ksana_runs {by_key} SET state = 'SCHEDULED', reason = NULL, epoch = epoch + 1, due_at = :now"
    " WHERE id IN (:ids*) AND state = 'WAITING'"
)
# Let in and claimed at once: two moves in one, told as the runs stood between them.
_HANDED = {"epoch": "epoch - 1", "attempt": "attempt - 1"}
_TO_HAND = {"epoch": "epoch + 1", "due_at": ":due_at"}
_HAND_OVER = (
    "UPDATE ksana_runs {by_key} SET state = 'RUNNING', reason = NULL, epoch = epoch + 2, attempt = attempt + 1,"
    " due_at = :due_at, node_id = :node_id, deadline_at = NULL, error = '', started_at = COALESCE(started_at, :now)"
    " WHERE id IN (:ids*)"
)
_MAY_BE_HANDED = "state = 'WAITING' AND queue IN (:queues*)"
_RETURNING_HANDED = f"RETURNING {', '.join(_HANDED.get(name, name) for name in DUE_COLUMNS.names)}"
HAND_OVER_STEPS = Statement(f"{_HAND_OVER} AND {_MAY_BE_HANDED} {_RETURNING_HANDED}")
_FAMILY = (
    "family AS (UPDATE ksana_chains SET stamp = :stamp WHERE run_id = :parent_id AND stamp = :known_stamp"
    f" AND (SELECT COUNT(*) FROM ksana_runs WHERE id IN (:ids*) AND {_MAY_BE_HANDED}) = :count"
)
_ENDED_IN_FAMILY = (
    f"ended AS (UPDATE ksana_runs SET {_ENDED}, last_attempt = :told WHERE id = :run_id AND epoch = :epoch"
    " AND EXISTS (SELECT 1 FROM family) RETURNING id)"
)
_TRIED = ", ".join(f"CAST(:a_{name} AS {{{kind}}})" for name, kind in ATTEMPTS.columns)
_LEFT_IN_FAMILY = (
    # Of an attempt its own row, of what is kept what is given: the rest stays as it was.
    f"attempted AS (INSERT INTO ksana_attempts ({', '.join(ATTEMPTS.names)})"
    f" SELECT {_TRIED} FROM ended WHERE :tries),"
    " kept AS (INSERT INTO ksana_kept (run_id, artifact, checkpoint)"
    " SELECT id, CAST(:artifact AS {bytes}), CAST(:checkpoint AS {bytes}) FROM ended WHERE :keeps"
    " ON CONFLICT (run_id) DO UPDATE SET artifact = COALESCE(excluded.artifact, ksana_kept.artifact),"
    " checkpoint = COALESCE(excluded.checkpoint, ksana_kept.checkpoint))"
)
PASS_ON = Statement(
    # A whole turn in one step, which is a transaction by itself: all of it or, if anything is not as expected, nothing.
    f"WITH {_FAMILY} RETURNING run_id), {_ENDED_IN_FAMILY}, {_LEFT_IN_FAMILY}"
    f" {_HAND_OVER} AND {_MAY_BE_HANDED} AND EXISTS (SELECT 1 FROM ended) {_RETURNING_HANDED}"
)
_PASSED = (
    "UPDATE ksana_runs {by_key} SET state = 'SUCCESS', reason = NULL, epoch = epoch + 1,"
    " due_at = CASE WHEN started_at IS NULL THEN :due_at ELSE due_at END, started_at = COALESCE(started_at, :due_at),"
    " ended_at = :due_at, error = '' WHERE id IN (:passes*) AND state = 'WAITING'"
)
PASS_STEPS = Statement(_PASSED)
_TOLD_AS_HANDED = ", ".join(_HANDED.get(name, name) for name in RUNS.names)
PASS_ON_BEYOND = Statement(
    # The same with steps in between that do nothing and are done; whole rows, of those and of the heirs.
    f"WITH {_FAMILY} AND (SELECT COUNT(*) FROM ksana_runs WHERE id IN (:passes*) AND state = 'WAITING') = :passed"
    f" RETURNING run_id), {_ENDED_IN_FAMILY}, {_LEFT_IN_FAMILY},"
    f" passed AS ({_PASSED} AND EXISTS (SELECT 1 FROM ended) RETURNING {_RUN}),"
    f" handed AS ({_HAND_OVER} AND {_MAY_BE_HANDED} AND EXISTS (SELECT 1 FROM ended) RETURNING {_TOLD_AS_HANDED})"
    " SELECT * FROM passed UNION ALL SELECT * FROM handed"
)
STEPS_TO_HAND_OVER = Statement(
    # The same in two steps, where a change cannot tell what it found.
    f"SELECT {', '.join(_TO_HAND.get(name, name) for name in DUE_COLUMNS.names)} FROM ksana_runs {{by_key}}"
    f" WHERE id IN (:ids*) AND {_MAY_BE_HANDED} ORDER BY id {{for_update}}"
)
HAND_OVER_LOCKED_STEPS = Statement(_HAND_OVER)
SKIP_STEPS = Statement(
    "UPDATE ksana_runs {by_key} SET state = 'SKIPPED', reason = 'dependency', epoch = epoch + 1, ended_at = :now"
    " WHERE id IN (:ids*) AND state = 'WAITING'"
)
ERRORS_OF_RUNS = Statement("SELECT id, step, error FROM ksana_runs WHERE id IN (:ids*)")
DROP_CHAINS = Statement("DELETE FROM ksana_chains WHERE run_id IN (:ids*)")
KEPT_OF_RUNS = Statement("SELECT run_id, artifact, checkpoint FROM ksana_kept WHERE run_id IN (:ids*)")
LOCK_KEPT = Statement("SELECT run_id FROM ksana_kept {by_key} WHERE run_id IN (:ids*) ORDER BY run_id {for_update}")
DROP_KEPT = Statement("DELETE FROM ksana_kept WHERE run_id IN (:ids*)")

# Reading runs

RUNS_BY_ID = Statement(f"SELECT {_RUN} FROM ksana_runs WHERE id IN (:ids*)")
RUN_BY_TOKEN = Statement(f"SELECT {_RUN} FROM ksana_runs WHERE callback_token = :token")
LAST_RUN_IDS = Statement(
    # Two steps into indexes per job; a MAX over groups would walk the whole history of each. Ids come in blocks per
    # node, so the highest does not tell which planned run is the newest: the latest slot does.
    "SELECT (SELECT r.id FROM ksana_runs r WHERE r.job_id = j.id ORDER BY r.id DESC LIMIT 1),"
    " (SELECT r.id FROM ksana_runs r WHERE r.job_id = j.id AND r.slot_at IS NOT NULL ORDER BY r.slot_at DESC LIMIT 1)"
    " FROM ksana_jobs j WHERE j.id IN (:ids*)"
)
LAST_RUN_IDS_IN = Statement(
    # The same, stepping back over runs in other states.
    "SELECT (SELECT r.id FROM ksana_runs r WHERE r.job_id = j.id AND r.state IN (:states*) ORDER BY r.id DESC LIMIT 1),"
    " (SELECT r.id FROM ksana_runs r WHERE r.job_id = j.id AND r.state IN (:states*) AND r.slot_at IS NOT NULL"
    " ORDER BY r.slot_at DESC LIMIT 1)"
    " FROM ksana_jobs j WHERE j.id IN (:ids*)"
)
ATTEMPTS_OF_RUN = Statement(f"SELECT {ATTEMPT_COLUMNS} {ATTEMPT_SOURCE} WHERE a.run_id = :run_id ORDER BY a.epoch")
LAST_ATTEMPT_OF_RUN = Statement(
    f"SELECT {LAST_ATTEMPT_COLUMNS} {LAST_ATTEMPT_SOURCE} WHERE r.id = :run_id AND r.last_attempt IS NOT NULL"
)
NEWEST_ATTEMPTS = Statement(
    f"SELECT {', '.join(f'a.{name}' for name in ATTEMPTS.names)}, {_SMALL_BODIES} {ATTEMPT_SOURCE}"
    # One step into the index per attempt; said as NOT EXISTS it is a join with the whole table.
    " WHERE a.run_id IN (:ids*) AND a.epoch = (SELECT MAX(n.epoch) FROM ksana_attempts n WHERE n.run_id = a.run_id)"
)
NEWEST_ATTEMPTS_TOLD = Statement(
    f"SELECT r.id, r.last_attempt, {_SMALL_BODIES} {LAST_ATTEMPT_SOURCE}"
    " WHERE r.id IN (:ids*) AND r.last_attempt IS NOT NULL"
)
FIRED_SLOTS = Statement(
    "SELECT job_id, slot_at, state, reason, id, created_at FROM ksana_runs WHERE job_id = :job_id"
    " AND slot_at >= :since AND slot_at < :until ORDER BY slot_at DESC LIMIT :limit"
)
GAPS_OF_JOB = Statement(
    "SELECT job_id, from_at, to_at, slots, reason, recorded_at FROM ksana_gaps WHERE job_id = :job_id"
    " AND from_at < :until AND to_at >= :since ORDER BY from_at DESC LIMIT :limit"
)

# Nodes

ADD_NODE = Statement(
    "INSERT INTO ksana_nodes (id, name, started_at, lease_until) VALUES (:id, :name, :started_at, :lease_until)"
)
EXTEND_LEASE = Statement("UPDATE ksana_nodes SET lease_until = :until WHERE id = :id")
DROP_NODE = Statement("DELETE FROM ksana_nodes WHERE id = :id")
ALL_NODES = Statement("SELECT id, name, started_at, lease_until, draining FROM ksana_nodes ORDER BY id")
IS_DRAINING = Statement("SELECT draining FROM ksana_nodes WHERE id = :id")
SET_DRAINING = Statement("UPDATE ksana_nodes SET draining = :draining WHERE id = :id")
TAKEN_RUNS = Statement("SELECT run_id, epoch FROM ksana_taken WHERE node_id = :node_id")
FORGET_TAKEN = Statement("DELETE FROM ksana_taken WHERE node_id = :node_id")
FORGET_HEARD = Statement(
    "DELETE FROM ksana_taken WHERE node_id = :node_id AND epoch = :epoch AND run_id IN (:run_ids*)"
)
FORGET_UNHEARD = Statement("DELETE FROM ksana_taken WHERE node_id NOT IN (SELECT id FROM ksana_nodes)")
HELD_NODES = Statement("SELECT DISTINCT node_id FROM ksana_runs {by_held} WHERE {held} AND node_id IS NOT NULL")
LIVE_NODES = Statement("SELECT id FROM ksana_nodes WHERE lease_until > :now")
RUNS_OF_NODES = Statement(
    f"SELECT {_RUN} FROM ksana_runs {{by_held}} WHERE {{held}} AND node_id IN (:node_ids*)"
    " ORDER BY node_id, id LIMIT :limit"
)
LAPSED_NODES = Statement("SELECT id FROM ksana_nodes WHERE lease_until <= :now")
PAST_DEADLINE = Statement(f"SELECT {_RUN} FROM ksana_runs WHERE deadline_at <= :now ORDER BY deadline_at LIMIT :limit")

# Retention and aggregates

OLD_RUNS = Statement(
    # Locked, so that a run which is tried again at this moment is not forgotten.
    "SELECT r.id FROM ksana_runs r {by_ended} WHERE r.state = :state AND r.ended_at < :before AND r.parent_id IS NULL"
    " AND (r.job_id IS NULL OR r.id <= (SELECT n.id FROM ksana_runs n WHERE n.job_id = r.job_id"
    " ORDER BY n.id DESC LIMIT 1 OFFSET :keep))"
    " ORDER BY r.ended_at, r.id LIMIT :limit OFFSET :passed {skip_locked}"
)
DROP_RUNS = Statement("DELETE FROM ksana_runs WHERE id IN (:ids*)")
DROP_ATTEMPTS = Statement("DELETE FROM ksana_attempts WHERE run_id IN (:ids*)")
DROP_EXCHANGES = Statement("DELETE FROM ksana_exchanges WHERE run_id IN (:ids*)")
DROP_ALERTS = Statement("DELETE FROM ksana_alerts WHERE {old_alerts}")
DROP_GAPS = Statement("DELETE FROM ksana_gaps WHERE {old_gaps}")
DROP_ANSWERS = Statement("DELETE FROM ksana_idempotency WHERE {old_answers}")
DROP_ENTRIES = Statement("DELETE FROM ksana_audit WHERE {old_entries}")
DROP_BUCKETS = Statement("DELETE FROM ksana_buckets WHERE {old_buckets}")

ROLLED_UNTIL = Statement("SELECT until_at FROM ksana_rolled WHERE one = 1")
LOCK_ROLLED = Statement("SELECT until_at FROM ksana_rolled WHERE one = 1 {for_update}")
SET_ROLLED = Statement("UPDATE ksana_rolled SET until_at = :until WHERE one = 1")
FIRST_ENDED = Statement(
    "SELECT ended_at FROM ksana_runs WHERE state = :state AND ended_at >= :since ORDER BY ended_at LIMIT 1"
)
ENDED_BY_MINUTE = Statement(
    "SELECT ended_at - ended_at % 60000000 AS minute_at, kind, COUNT(*),"
    " SUM(CASE WHEN started_at IS NULL THEN 0 ELSE ended_at - started_at END),"
    " SUM(CASE WHEN started_at > due_at THEN started_at - due_at ELSE 0 END) FROM ksana_runs"
    " WHERE state = :state AND ended_at >= :since AND ended_at < :until GROUP BY 1, 2"
)
ROLLED_MINUTES = Statement(
    "SELECT minute_at, kind, state, runs, busy_ms, late_ms FROM ksana_minutes"
    " WHERE minute_at >= :since AND minute_at < :until ORDER BY minute_at, kind, state"
)

# Gauges

COUNT_JOBS = Statement(
    "SELECT surface, enabled, COUNT(*) FROM ksana_jobs WHERE deleted_at IS NULL GROUP BY surface, enabled"
)
COUNT_UNFINISHED = Statement(
    "SELECT state, COUNT(*) FROM ksana_runs WHERE ended_at IS NULL"
    " AND state IN ('WAITING', 'SCHEDULED', 'RUNNING', 'RETRYING', 'CALLBACK_PENDING', 'STOPPING') GROUP BY state"
)
COUNT_DUE = Statement("SELECT COUNT(*), MIN(due_at) FROM ksana_runs WHERE {ready} AND due_at <= :now")
COUNT_DEAD = Statement("SELECT COUNT(*) FROM ksana_runs WHERE state = 'DEAD_LETTER' AND ended_at IS NOT NULL")

# Idempotency and keys

IDEMPOTENT_ANSWER = Statement(
    "SELECT scope, idem_key, fingerprint, status, body, created_at FROM ksana_idempotency"
    " WHERE scope = :scope AND idem_key = :key"
)
ANSWERS_TO_KEYS = Statement(
    "SELECT idem_key, body FROM ksana_idempotency WHERE scope = :scope AND idem_key IN (:keys*)"
)
ALL_KEYS = Statement("SELECT id, name, digest, scopes, created_at, revoked_at FROM ksana_keys ORDER BY created_at, id")
REVOKE_KEY = Statement("UPDATE ksana_keys SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL")

# Copies to and from other stores

ALL_SEQUENCES = Statement("SELECT name, next_id FROM ksana_sequences ORDER BY name")
RAISE_SEQUENCE = Statement(
    # Locks the row even if it stays as it is: whoever restores things that take from this sequence goes one by one.
    "UPDATE ksana_sequences SET next_id = CASE WHEN next_id < :next_id THEN :next_id ELSE next_id END"
    " WHERE name = :name"
)
TAKE_IDENTITY = Statement("UPDATE ksana_identity SET value = :value WHERE one = 1")
RAISE_ROLLED = Statement("UPDATE ksana_rolled SET until_at = :until WHERE one = 1 AND until_at < :until")
JOBS_PRESENT = Statement("SELECT id FROM ksana_jobs WHERE id IN (:ids*)")
ATTEMPTS_PRESENT = Statement("SELECT run_id, epoch FROM ksana_attempts WHERE run_id IN (:ids*)")
