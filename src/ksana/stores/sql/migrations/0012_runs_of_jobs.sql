-- Items and steps are runs of no job: where an index may be partial, the one by job leaves them out.

{drop_job_index};
{add_job_index};
