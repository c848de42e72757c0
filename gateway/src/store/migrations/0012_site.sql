-- What admins say of the site as a whole. One row or none.

create table site (
    only_one       integer primary key check (only_one = 1),
    -- Shown in the console's head; empty: the product's own name.
    name           text    not null,
    -- Whether a job is asked about once more before it is submitted, whatever it costs.
    confirm_always integer not null check (confirm_always in (0, 1)),
    -- Whether an admin has been through the first steps, or has put them away.
    set_up         integer not null check (set_up in (0, 1))
) strict;
