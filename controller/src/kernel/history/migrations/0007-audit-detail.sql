-- Detail of an action besides its object, such as the statement that the query console ran.
alter table audit add column detail text;
