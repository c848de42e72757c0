-- Which cluster each instance, job and saved image is on, and the pool that an instance asked for. What was there before
-- a site had several is on the one that it had.

alter table instances add column cluster text not null default 'default';
alter table instances add column pool text;
alter table jobs add column cluster text not null default 'default';
alter table images add column cluster text not null default 'default';
