-- Runs with children, and what is kept of runs for others. Whoever moves a family on locks its row and leaves a new stamp.

CREATE TABLE ksana_chains (
  run_id {int} NOT NULL PRIMARY KEY,
  stamp {int} NOT NULL
) {table};

CREATE TABLE ksana_kept (
  run_id {int} NOT NULL PRIMARY KEY,
  artifact {bytes} NULL,
  checkpoint {bytes} NULL
) {table};
