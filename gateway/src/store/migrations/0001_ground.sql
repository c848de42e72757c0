-- Times are milliseconds since 1970 (UTC). JSON columns hold the types of gateway-api and envd-api.

create table users (
    id                   integer primary key,
    name                 text    not null unique collate nocase,
    password_hash        text    not null,
    role                 text    not null check (role in ('admin', 'user')),
    must_change_password integer not null check (must_change_password in (0, 1)),
    created_at           integer not null
) strict;

-- Only the hash of a session's token is kept: a leaked database opens nothing.
create table sessions (
    token_hash blob    primary key,
    user_id    integer not null references users (id) on delete cascade,
    created_at integer not null,
    expires_at integer not null
) strict;

create index sessions_by_user on sessions (user_id);

-- Users write goal and generation, the cluster's reports write status.
create table instances (
    id         text    primary key,
    user_id    integer not null references users (id),
    name       text    not null,
    slug       text    not null,
    spec       text    not null,
    goal       text    not null check (goal in ('running', 'stopped', 'deleted')),
    generation integer not null,
    status     text    not null,
    created_at integer not null,
    unique (user_id, slug)
) strict;
