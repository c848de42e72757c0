-- The language that a user has chosen; null: that of the browser or the terminal.
alter table users add column language text check (language in ('en', 'zh-CN'));
