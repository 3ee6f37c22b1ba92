-- What is stored of tasks, their runs and callbacks, under the names and columns their document gives. To be read only.

{text_function};

CREATE VIEW tasks AS {view_tasks};

CREATE VIEW task_runs AS {view_task_runs};

CREATE VIEW async_callbacks AS {view_async_callbacks};
