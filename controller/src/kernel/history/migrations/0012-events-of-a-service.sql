-- Events of other objects, such as backups, that name a service.
create index event_by_named_service on event ((data->>'service_id'), sequence);
