-- What admins tell everyone: announcements, and the rules of the place with who has agreed to them.

create table announcements (
    id         integer primary key,
    level      text    not null check (level in ('info', 'warning')),
    chinese    text    not null,
    english    text    not null,
    -- Shown from then on, and until then if there is an end.
    starts_at  integer not null,
    ends_at    integer,
    created_at integer not null
) strict;

-- One row or none. A new text is a new version, which everyone is asked about again.
create table rules (
    only_one   integer primary key check (only_one = 1),
    version    integer not null,
    chinese    text    not null,
    english    text    not null,
    changed_at integer not null
) strict;

create table rules_accepted (
    user_id     integer primary key references users (id) on delete cascade,
    version     integer not null,
    accepted_at integer not null
) strict;
