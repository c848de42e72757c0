-- What was installed in a saved image beyond its parent, as JSON; none where nobody looked. And for how long its instance
-- stood still.
alter table images add column packages text;
alter table images add column frozen_ms integer not null default 0;
