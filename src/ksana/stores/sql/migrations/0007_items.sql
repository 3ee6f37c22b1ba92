-- Items of the queue are runs that a worker holds who is none of our nodes.

ALTER TABLE ksana_runs ADD COLUMN holder {name} NULL;
