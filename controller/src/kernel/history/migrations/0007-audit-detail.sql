-- What an action was about beside its object, such as the statement that the console ran.
alter table audit add column detail text;
