-- Whether a node is to take on nothing more.

ALTER TABLE ksana_nodes ADD COLUMN draining {int} NOT NULL DEFAULT 0;
