-- When the pause of a job ends by itself.

ALTER TABLE ksana_jobs ADD COLUMN resumes_at {int} NULL;

CREATE INDEX ksana_jobs_resumes ON ksana_jobs (resumes_at, id) {where_resumes};
