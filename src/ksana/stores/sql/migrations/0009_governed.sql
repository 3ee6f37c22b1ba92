-- What items are about, what was set for queues, and who changed what.

ALTER TABLE ksana_runs ADD COLUMN subject {subject} NULL;

CREATE INDEX ksana_runs_subject ON ksana_runs (subject, id) {where_subject};

{held_column};

CREATE INDEX ksana_runs_handed_out ON ksana_runs ({held_index}) {where_handed_out};

CREATE TABLE ksana_objects (
  subject {subject} NOT NULL PRIMARY KEY,
  type {name} NOT NULL,
  id {name} NOT NULL,
  version {int} NOT NULL,
  risk {code} NOT NULL,
  epistemic {code} NOT NULL,
  next_action_at {int} NULL,
  body {bytes} NOT NULL
) {table};

CREATE UNIQUE INDEX ksana_objects_id ON ksana_objects (type, id);
CREATE INDEX ksana_objects_due ON ksana_objects (next_action_at) {where_next};

CREATE TABLE ksana_queues (
  queue {name} NOT NULL PRIMARY KEY,
  version {int} NOT NULL,
  body {bytes} NOT NULL,
  busy_until {int} NULL
) {table};

CREATE TABLE ksana_buckets (
  queue {name} NOT NULL,
  subject {subject} NOT NULL,
  busy_until {int} NOT NULL,
  PRIMARY KEY (queue, subject)
) {table};

CREATE INDEX ksana_buckets_busy ON ksana_buckets (busy_until);

INSERT INTO ksana_sequences (name, next_id) VALUES ('audit', 1);

CREATE TABLE ksana_audit (
  id {int} NOT NULL PRIMARY KEY,
  at {int} NOT NULL,
  actor {line} NOT NULL,
  action {label} NOT NULL,
  subject {label} NOT NULL,
  subject_id {subject} NOT NULL,
  reason {text} NOT NULL,
  value_before {bytes} NULL,
  value_after {bytes} NULL,
  evidence {text} NULL,
  request_id {line} NULL
) {table};

CREATE INDEX ksana_audit_subject ON ksana_audit (subject, subject_id, id);
CREATE INDEX ksana_audit_at ON ksana_audit (at);
