-- Secrets of users and of the site, sealed with a key that is not in the store.

create table secrets (
    id         integer primary key,
    -- Whose; null: the site's.
    user_id    integer references users (id) on delete cascade,
    name       text    not null,
    -- The registry that it is the password for, and who signs in there.
    host       text,
    login      text,
    sealed     blob    not null,
    changed_at integer not null,
    check ((host is null) = (login is null)),
    check (user_id is not null or host is not null)
) strict;

create unique index secrets_by_name on secrets (coalesce(user_id, 0), name);
-- One login for each registry.
create unique index secrets_by_host on secrets (coalesce(user_id, 0), host) where host is not null;
