-- What images take of their users' and their groups' room.

-- What a save may take at most, which counts while it is under way.
alter table images add column wanted_bytes integer not null default 0;
-- Until when the cluster keeps what a failed save has made so far, so that it can be tried again from there.
alter table images add column kept_until integer;

-- The blobs of an image that count for its user. One of several images of a user counts once.
create table image_blobs (
    image_id   text    not null references images (id) on delete cascade,
    digest     text    not null,
    size_bytes integer not null,
    primary key (image_id, digest)
) strict, without rowid;

insert into image_blobs (image_id, digest, size_bytes)
select id, digest, added_bytes from images where digest is not null;

-- Blobs that users have uploaded and that no image of theirs names yet.
create table uploads (
    user_id     integer not null references users (id),
    digest      text    not null,
    size_bytes  integer not null,
    uploaded_at integer not null,
    primary key (user_id, digest)
) strict, without rowid;
