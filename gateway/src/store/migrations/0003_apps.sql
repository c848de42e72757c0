-- Sessions of one app's host, and console sessions that were opened by another one. All of them end with their parent.

alter table sessions add column parent_hash blob references sessions (token_hash) on delete cascade;
create index sessions_by_parent on sessions (parent_hash);

-- Only the hash of the cookie is kept. A session opens one app of one instance, for the instance's owner, at one
-- address, for as long as the key that made it is good.
create table app_sessions (
    token_hash   blob    primary key,
    user_id      integer not null references users (id) on delete cascade,
    instance_id  text    not null references instances (id) on delete cascade,
    app          text    not null,
    folder       text,
    session_hash blob    references sessions (token_hash) on delete cascade,
    token_id     text    references tokens (id) on delete cascade,
    created_at   integer not null,
    expires_at   integer not null,
    check ((session_hash is null) <> (token_id is null))
) strict;

create index app_sessions_by_user on app_sessions (user_id);
create index app_sessions_by_instance on app_sessions (instance_id);
create index app_sessions_by_session on app_sessions (session_hash);
create index app_sessions_by_token on app_sessions (token_id);
