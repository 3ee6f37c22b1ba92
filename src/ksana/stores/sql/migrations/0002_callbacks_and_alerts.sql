-- What the outside world says of runs, and what the outside world is told of them.

INSERT INTO ksana_sequences (name, next_id) VALUES ('callback', 1);

CREATE TABLE ksana_callbacks (
  id {int} NOT NULL PRIMARY KEY,
  run_id {int} NOT NULL,
  received_at {int} NOT NULL,
  status {code} NOT NULL,
  note {line} NOT NULL,
  headers {bytes} NOT NULL,
  body {bytes} NOT NULL
) {table};

CREATE INDEX ksana_callbacks_run ON ksana_callbacks (run_id, id);

CREATE TABLE ksana_progress (
  run_id {int} NOT NULL PRIMARY KEY,
  attempt {int} NOT NULL,
  millionths {int} NULL,
  message {line} NOT NULL,
  reported_at {int} NOT NULL,
  limit_at {int} NULL
) {table};

CREATE TABLE ksana_alerts (
  run_id {int} NOT NULL,
  epoch {int} NOT NULL,
  hook {name} NOT NULL,
  body {bytes} NOT NULL,
  created_at {int} NOT NULL,
  due_at {int} NULL,
  attempts {int} NOT NULL,
  state {code} NOT NULL,
  ended_at {int} NULL,
  error {line} NOT NULL,
  PRIMARY KEY (run_id, epoch, hook)
) {table};

CREATE INDEX ksana_alerts_due ON ksana_alerts (hook, due_at) {where_undelivered};
CREATE INDEX ksana_alerts_ended ON ksana_alerts (ended_at) {where_ended};
