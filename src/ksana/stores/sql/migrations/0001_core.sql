-- Words in braces are the dialect's: see dialects.py. One statement per semicolon at the end of a line.

CREATE TABLE ksana_sequences (
  name {code} NOT NULL PRIMARY KEY,
  next_id {int} NOT NULL
) {table};

INSERT INTO ksana_sequences (name, next_id) VALUES ('job', 1), ('run', 1), ('node', 1);

CREATE TABLE ksana_identity (
  one {int} NOT NULL PRIMARY KEY,
  value {int} NOT NULL
) {table};

CREATE TABLE ksana_jobs (
  id {int} NOT NULL PRIMARY KEY,
  surface {code} NOT NULL,
  ref {name} NULL,
  name {name} NOT NULL,
  folded_name {line} NOT NULL,
  kind {code} NOT NULL,
  enabled {int} NOT NULL,
  version {int} NOT NULL,
  definition {bytes} NOT NULL,
  created_at {int} NOT NULL,
  updated_at {int} NOT NULL,
  deleted_at {int} NULL
) {table};

CREATE UNIQUE INDEX ksana_jobs_ref ON ksana_jobs (surface, ref);
CREATE INDEX ksana_jobs_name ON ksana_jobs (surface, name);
CREATE INDEX ksana_jobs_updated ON ksana_jobs (updated_at);

CREATE TABLE ksana_tags (
  tag {name} NOT NULL,
  job_id {int} NOT NULL,
  PRIMARY KEY (tag, job_id)
) {table};

CREATE INDEX ksana_tags_job ON ksana_tags (job_id);

CREATE TABLE ksana_cursors (
  job_id {int} NOT NULL PRIMARY KEY,
  version {int} NOT NULL DEFAULT 0,
  slot_limit {int} NULL,
  next_slot_at {int} NULL,
  next_fire_at {int} NULL
) {table};

CREATE INDEX ksana_cursors_due ON ksana_cursors (next_fire_at, job_id) {where_planned};

CREATE TABLE ksana_runs (
  id {int} NOT NULL PRIMARY KEY,
  job_id {int} NULL,
  job_version {int} NOT NULL DEFAULT 0,
  surface {code} NOT NULL DEFAULT '',
  kind {code} NOT NULL DEFAULT '',
  queue {name} NOT NULL DEFAULT '',
  made_by {code} NOT NULL DEFAULT '',
  slot_at {int} NULL,
  state {code} NOT NULL DEFAULT '',
  reason {code} NULL,
  epoch {int} NOT NULL DEFAULT 0,
  attempt {int} NOT NULL DEFAULT 0,
  failures {int} NOT NULL DEFAULT 0,
  reclaims {int} NOT NULL DEFAULT 0,
  priority {int} NOT NULL DEFAULT 0,
  due_at {int} NOT NULL DEFAULT 0,
  deadline_at {int} NULL,
  node_id {int} NULL,
  created_at {int} NOT NULL DEFAULT 0,
  started_at {int} NULL,
  ended_at {int} NULL,
  error {line} NOT NULL DEFAULT '',
  callback_token {code} NULL,
  parent_id {int} NULL,
  step {name} NULL,
  input {bytes} NULL
  {ready_column}
) {runs_table};

CREATE UNIQUE INDEX ksana_runs_slot ON ksana_runs (job_id, slot_at) {where_slot};
CREATE INDEX ksana_runs_ready ON ksana_runs ({ready_index}) {where_ready};
CREATE INDEX ksana_runs_live ON ksana_runs ({live_index}) {where_live};
CREATE INDEX ksana_runs_job ON ksana_runs (job_id, id);
CREATE INDEX ksana_runs_ended ON ksana_runs (state, ended_at) {where_ended};
CREATE INDEX ksana_runs_node ON ksana_runs (node_id, id) {where_held};
CREATE INDEX ksana_runs_deadline ON ksana_runs (deadline_at) {where_deadline};
CREATE UNIQUE INDEX ksana_runs_token ON ksana_runs (callback_token) {where_token};
CREATE INDEX ksana_runs_parent ON ksana_runs (parent_id, step) {where_parent};

CREATE TABLE ksana_attempts (
  run_id {int} NOT NULL,
  epoch {int} NOT NULL,
  number {int} NOT NULL,
  node_id {int} NULL,
  started_at {int} NOT NULL,
  ended_at {int} NOT NULL,
  verdict {code} NOT NULL,
  timed_out {int} NOT NULL,
  code {int} NULL,
  error {text} NULL,
  result {bytes} NULL,
  PRIMARY KEY (run_id, epoch)
) {table};

CREATE TABLE ksana_exchanges (
  run_id {int} NOT NULL,
  epoch {int} NOT NULL,
  head {bytes} NOT NULL,
  request_body {bytes} NOT NULL,
  response_body {bytes} NOT NULL,
  PRIMARY KEY (run_id, epoch)
) {table};

CREATE TABLE ksana_gaps (
  job_id {int} NOT NULL,
  from_at {int} NOT NULL,
  to_at {int} NOT NULL,
  slots {int} NOT NULL,
  reason {code} NOT NULL,
  recorded_at {int} NOT NULL,
  PRIMARY KEY (job_id, from_at, reason)
) {table};

CREATE INDEX ksana_gaps_recorded ON ksana_gaps (recorded_at);

CREATE TABLE ksana_nodes (
  id {int} NOT NULL PRIMARY KEY,
  name {name} NOT NULL,
  started_at {int} NOT NULL,
  lease_until {int} NOT NULL
) {table};

CREATE TABLE ksana_taken (
  node_id {int} NOT NULL,
  run_id {int} NOT NULL,
  epoch {int} NOT NULL,
  PRIMARY KEY (node_id, run_id, epoch)
) {table};

CREATE TABLE ksana_minutes (
  minute_at {int} NOT NULL,
  kind {code} NOT NULL,
  state {code} NOT NULL,
  runs {int} NOT NULL,
  busy_ms {int} NOT NULL,
  late_ms {int} NOT NULL,
  PRIMARY KEY (minute_at, kind, state)
) {table};

CREATE TABLE ksana_rolled (
  one {int} NOT NULL PRIMARY KEY,
  until_at {int} NOT NULL
) {table};

CREATE TABLE ksana_idempotency (
  scope {code} NOT NULL,
  idem_key {name} NOT NULL,
  fingerprint {bytes} NOT NULL,
  status {int} NOT NULL,
  body {bytes} NOT NULL,
  created_at {int} NOT NULL,
  PRIMARY KEY (scope, idem_key)
) {table};

CREATE INDEX ksana_idempotency_age ON ksana_idempotency (created_at);

CREATE TABLE ksana_keys (
  id {code} NOT NULL PRIMARY KEY,
  name {name} NOT NULL,
  digest {bytes} NOT NULL,
  scopes {line} NOT NULL,
  created_at {int} NOT NULL,
  revoked_at {int} NULL
) {table};
