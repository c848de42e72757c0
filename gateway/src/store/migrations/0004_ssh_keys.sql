-- Public keys of users, to sign in with over SSH.

create table ssh_keys (
    id           text    primary key,
    -- What stands for the key where sessions and tokens have the hash of their secret.
    hash         blob    not null unique,
    user_id      integer not null references users (id) on delete cascade,
    name         text    not null,
    -- The SHA-256 of the key itself, and the key as a line of `authorized_keys` without comment.
    fingerprint  blob    not null,
    public_key   text    not null,
    -- When its owner showed that they have the private half: anyone can add a key that is not theirs.
    proved_at    integer,
    created_at   integer not null,
    last_used_at integer,
    unique (user_id, name),
    unique (user_id, fingerprint)
) strict;

-- A key that was proved tells whose it is.
create unique index ssh_keys_by_fingerprint on ssh_keys (fingerprint) where proved_at is not null;
