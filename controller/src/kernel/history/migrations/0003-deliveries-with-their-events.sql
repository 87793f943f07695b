-- Deliveries are made in the statement that brings their event. What is left of the list is what was asked for again.
delete from webhook_fan_out where webhook_id is null;
alter table webhook_fan_out rename to webhook_repeat;
alter table webhook_repeat alter column webhook_id set not null;

-- Deliveries that are due at the same time go in the order in which they were made.
drop index webhook_delivery_by_webhook;
create index webhook_delivery_by_webhook on webhook_delivery (webhook_id, due_at, id);
