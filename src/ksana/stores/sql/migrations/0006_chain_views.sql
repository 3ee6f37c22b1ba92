-- What is stored of chains and their runs, under the names and columns their document gives. To be read only.

CREATE VIEW job_chain_definition AS {view_job_chain_definition};

CREATE VIEW job_run AS {view_job_run};

CREATE VIEW job_run_node AS {view_job_run_node};

CREATE VIEW job_run_checkpoint AS {view_job_run_checkpoint};
