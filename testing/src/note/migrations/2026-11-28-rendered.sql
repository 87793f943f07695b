create table rendered_note (id text primary key);
