-- Groups, workspaces, API tokens and the audit log; users can be disabled, removed and lead a group.

create table groups (
    id         integer primary key,
    name       text    not null unique collate nocase,
    created_at integer not null
) strict;

-- Everyone who was put into no other group is in this one.
insert into groups (id, name, created_at) values (1, 'default', unixepoch() * 1000);

-- SQLite cannot change a check in place, and dropping a table that others refer to empties those too. So users and the
-- two tables that refer to them are made anew, children after parents, and the old ones go, children before parents.
create table new_users (
    id                   integer primary key,
    name                 text    not null collate nocase,
    password_hash        text    not null,
    role                 text    not null check (role in ('admin', 'leader', 'user')),
    group_id             integer not null default 1 references groups (id),
    -- The key of the user's storage. Never used twice, so that whoever gets a name again does not get the files of
    -- its former owner.
    home                 text    not null unique,
    must_change_password integer not null check (must_change_password in (0, 1)),
    created_at           integer not null,
    disabled_at          integer,
    removed_at           integer,
    -- Set when a removed user can no longer be restored. The row stays, for `home` and the instances under way.
    purged_at            integer
) strict;

create table new_sessions (
    token_hash blob    primary key,
    user_id    integer not null references new_users (id) on delete cascade,
    created_at integer not null,
    expires_at integer not null
) strict;

create table new_instances (
    id         text    primary key,
    user_id    integer not null references new_users (id),
    name       text    not null,
    slug       text    not null,
    spec       text    not null,
    goal       text    not null check (goal in ('running', 'stopped', 'deleted')),
    generation integer not null,
    status     text    not null,
    created_at integer not null,
    unique (user_id, slug)
) strict;

insert into new_users (id, name, password_hash, role, home, must_change_password, created_at)
select id, name, password_hash, role, name, must_change_password, created_at from users;
insert into new_sessions (token_hash, user_id, created_at, expires_at)
select token_hash, user_id, created_at, expires_at from sessions;
insert into new_instances (id, user_id, name, slug, spec, goal, generation, status, created_at)
select id, user_id, name, slug, spec, goal, generation, status, created_at from instances;

drop table instances;
drop table sessions;
drop table users;
alter table new_users rename to users;
alter table new_sessions rename to sessions;
alter table new_instances rename to instances;

create unique index users_by_name on users (name) where purged_at is null;
create index users_by_group on users (group_id);
create index sessions_by_user on sessions (user_id);

create table workspaces (
    id         integer primary key,
    name       text    not null unique collate nocase,
    created_at integer not null
) strict;

create table workspace_members (
    workspace_id integer not null references workspaces (id) on delete cascade,
    user_id      integer not null references users (id) on delete cascade,
    primary key (workspace_id, user_id)
) strict, without rowid;

create index workspace_members_by_user on workspace_members (user_id);

-- Only the hash of a token is kept, as with sessions.
create table tokens (
    id           text    primary key,
    token_hash   blob    not null unique,
    user_id      integer not null references users (id) on delete cascade,
    name         text    not null,
    scope        text    not null check (scope in ('all', 'read')),
    created_at   integer not null,
    expires_at   integer not null,
    last_used_at integer,
    unique (user_id, name)
) strict;

-- Names, not ids: a line says what was true when it was written, whatever becomes of those it names.
create table audit (
    id         integer primary key autoincrement,
    at         integer not null,
    actor      text    not null,
    source     text    not null,
    act        text    not null,
    object     text    not null,
    result     text    not null check (result in ('done', 'refused')),
    request_id text    not null,
    details    text    not null
) strict;

create index audit_by_actor on audit (actor, id);
create index audit_by_act on audit (act, id);

create trigger audit_is_never_changed before update on audit begin
    select raise(abort, 'the audit log is append-only');
end;
create trigger audit_is_never_shortened before delete on audit begin
    select raise(abort, 'the audit log is append-only');
end;
