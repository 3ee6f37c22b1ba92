-- Nearly every run is ended by its only attempt. Telling that attempt in the run's own row, which is rewritten at this
-- moment anyway, saves a row and an index entry for each of them.

ALTER TABLE ksana_runs ADD COLUMN last_attempt {text} NULL;

{slim_indexes};
