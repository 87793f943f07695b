-- The statement that inserts an event also inserts its deliveries, so the table only has events whose repeated delivery
-- was requested.
delete from webhook_fan_out where webhook_id is null;
alter table webhook_fan_out rename to webhook_repeat;
alter table webhook_repeat alter column webhook_id set not null;

-- Deliveries that are due at the same time are sent in the order of their ids.
drop index webhook_delivery_by_webhook;
create index webhook_delivery_by_webhook on webhook_delivery (webhook_id, due_at, id);
