-- Whether an SSH session starts the instance when it is stopped.

alter table instances add column auto_start integer not null default 0;
