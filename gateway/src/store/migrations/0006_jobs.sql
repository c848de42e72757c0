-- Jobs, their tasks, and who holds how much of which machine.

create table jobs (
    id                 text    primary key,
    user_id            integer not null references users (id),
    name               text    not null,
    slug               text    not null,
    -- As it was submitted, byte for byte.
    file               blob    not null,
    -- What it became, without its secrets: those are only in the file.
    spec               text    not null,
    warnings           text    not null,
    goal               text    not null check (goal in ('running', 'stopped', 'deleted')),
    stopped_by         text,
    -- Grows with each act of a user and each step of the loop, so that neither undoes the other.
    version            integer not null,
    status             text    not null,
    -- How the present try ended, while its tasks are still being stopped.
    verdict            text,
    ended              text,
    attempt            integer not null,
    counted            integer not null,
    free               integer not null,
    priority           integer not null,
    time_limit_seconds integer,
    keep               integer not null check (keep in (0, 1)),
    created_at         integer not null,
    queued_at          integer not null,
    -- When the tasks of the present try were told to begin.
    begun_at           integer,
    started_at         integer,
    ended_at           integer,
    kept_until         integer,
    unique (user_id, slug)
) strict;

create index jobs_by_user on jobs (user_id, created_at);
create index jobs_under_way on jobs (ended_at) where ended_at is null;

-- They outlive the instances that they were.
create table tasks (
    job_id      text    not null references jobs (id) on delete cascade,
    attempt     integer not null,
    role        integer not null,
    task        integer not null,
    instance_id text    not null unique,
    slug        text    not null,
    ports       text    not null,
    cards       text    not null,
    address     text,
    ended       text,
    -- Whether its output has been copied to its end.
    log_whole   integer not null default 0 check (log_whole in (0, 1)),
    ended_at    integer,
    primary key (job_id, attempt, role, task)
) strict;

-- What happened to a job, from its submission on.
create table job_events (
    job_id text    not null references jobs (id) on delete cascade,
    number integer not null,
    at     integer not null,
    event  text    not null,
    primary key (job_id, number)
) strict, without rowid;

alter table instances add column job_id text references jobs (id);
alter table instances add column queued_at integer not null default 0;
alter table instances add column priority integer not null default 5;
create index instances_by_job on instances (job_id) where job_id is not null;
update instances set queued_at = created_at;

-- What an instance holds from the decision to start it until its container has ended. Without one nothing is started.
create table reservations (
    instance_id text    primary key references instances (id) on delete cascade,
    node        text    not null,
    cpus_milli  integer not null,
    memory_mib  integer not null,
    sequence    integer not null,
    taken_at    integer not null
) strict;

-- A card has one owner, whatever the code believes.
create table cards (
    node        text not null,
    card        text not null,
    instance_id text not null references reservations (instance_id) on delete cascade,
    primary key (node, card)
) strict, without rowid;

create index cards_by_instance on cards (instance_id);

insert into reservations (instance_id, node, cpus_milli, memory_mib, sequence, taken_at)
select id, '', cast(round(json_extract(spec, '$.cpus') * 1000) as integer),
       json_extract(spec, '$.memory_bytes') / 1048576, rowid, created_at
from instances
where (goal = 'running' and json_extract(status, '$.state') not in ('stopped', 'succeeded', 'failed'))
   or (goal <> 'running' and json_extract(status, '$.state') in ('stopping', 'deleting'));

-- What a user or a group may hold at a time. What is absent has no limit.
create table quotas (
    owner  text    not null check (owner in ('user', 'group')),
    id     integer not null,
    limits text    not null,
    raised text,
    primary key (owner, id)
) strict, without rowid;
