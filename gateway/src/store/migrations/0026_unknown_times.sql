-- Times of which this store has no memory: between the last line of its audit log and a later start. After a short pause
-- nothing is lost; of a store that was put back from a backup it is all that happened since.
create table unknown_times (
    since integer not null,
    until integer not null,
    check (since < until)
) strict;
