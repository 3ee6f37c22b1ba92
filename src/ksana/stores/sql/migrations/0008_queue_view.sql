-- Items of the queue, under the name and columns their document gives. To be read only.

CREATE VIEW jobs AS {view_jobs};
