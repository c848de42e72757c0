-- Images that users saved from their instances. `state` holds an `ImageState`.

create table images (
    id            text    primary key,
    user_id       integer not null references users (id),
    -- Where it is in the registry. By the user's `home`, so that nobody gets the images of a former owner of a name.
    repository    text    not null,
    name          text    not null,
    tag           text    not null,
    message       text    not null,
    -- The instance that it was saved from, which may be gone; none for an image that was pushed.
    instance_id   text,
    instance_name text,
    parent        text    not null,
    exclude       text    not null,
    share         text    not null check (share in ('me', 'group', 'everyone')),
    platform      integer not null default 0 check (platform in (0, 1)),
    proposed      integer not null default 0 check (proposed in (0, 1)),
    -- Whether the instance is to be stopped once the image is whole.
    stop          integer not null check (stop in (0, 1)),
    state         text    not null,
    phase         text    not null check (phase in ('saving', 'ready', 'failed', 'deleting')),
    -- Whether nothing is left to do: the cluster has forgotten the save, the instance was stopped.
    settled       integer not null default 0 check (settled in (0, 1)),
    digest        text,
    size_bytes    integer not null default 0,
    added_bytes   integer not null default 0,
    layers        integer not null default 0,
    created_at    integer not null,
    unique (user_id, name, tag)
) strict;

-- One save at a time for each instance.
create unique index images_being_saved on images (instance_id) where phase = 'saving';
create index images_unsettled on images (id) where settled = 0;
