-- When each step of an instance's last start began, by its state. Written by triggers: whoever changes a status need not
-- think of it, and no clock stops with a browser or a gateway.

alter table instances add column start_times text not null default '{}';

create trigger instance_begins after insert on instances
begin
    update instances
    set start_times = json_object(json_extract(new.status, '$.state'), cast(unixepoch('subsec') * 1000 as integer))
    where id = new.id;
end;

-- A step of a start that follows anything else begins a new one. A step that comes twice keeps the time of its first.
create trigger instance_goes_on after update of status on instances
when json_extract(new.status, '$.state') <> json_extract(old.status, '$.state')
begin
    update instances
    set start_times = json_insert(
        case
            when json_extract(new.status, '$.state') in ('waiting', 'pulling', 'starting')
                 and exists (select 1 from json_each(old.start_times) where key not in ('waiting', 'pulling', 'starting'))
            then '{}'
            else old.start_times
        end,
        '$.' || json_extract(new.status, '$.state'), cast(unixepoch('subsec') * 1000 as integer))
    where id = new.id;
end;
