-- Who has held how much, and for how long: what `reservations` forgets when it is over.

create table holdings (
    id          integer primary key,
    instance_id text    not null,
    user_id     integer not null references users (id) on delete cascade,
    -- The group that the user was in at the time.
    group_name  text    not null,
    cpus_milli  integer not null,
    gpus        integer not null,
    gpu_model   text,
    taken_at    integer not null,
    freed_at    integer
) strict;

create index holdings_by_instance on holdings (instance_id) where freed_at is null;
create index holdings_by_time on holdings (taken_at);

-- However a reservation goes, what it was ends with it.
create trigger holdings_end after delete on reservations
begin
    update holdings set freed_at = cast(unixepoch('subsec') * 1000 as integer)
    where instance_id = old.instance_id and freed_at is null;
end;

insert into holdings (instance_id, user_id, group_name, cpus_milli, gpus, taken_at)
select r.instance_id, users.id, groups.name, r.cpus_milli,
       (select count(*) from cards where cards.instance_id = r.instance_id), r.taken_at
from reservations as r join instances as i on i.id = r.instance_id join users on users.id = i.user_id
     join groups on groups.id = users.group_id;
