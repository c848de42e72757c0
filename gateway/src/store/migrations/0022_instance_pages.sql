-- A page of a list of instances costs by its own length, however many there are. Tasks are shown with their jobs.
create index instances_shown on instances (id) where job_id is null;
create index instances_shown_by_user on instances (user_id, id) where job_id is null;
