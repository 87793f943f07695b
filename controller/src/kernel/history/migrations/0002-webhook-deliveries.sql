-- Events whose deliveries are not created yet. With a webhook_id: an event that is delivered to this endpoint again.
create table webhook_fan_out (
  place bigint generated always as identity primary key,
  event_id uuid not null,
  occurred_at timestamptz not null,
  webhook_id text
);

-- Pending deliveries of events to endpoints: until an attempt succeeded or the last one failed. `attempt` is the number
-- of the next attempt, from 1.
create table webhook_delivery (
  id uuid primary key default gen_random_uuid(),
  webhook_id text not null,
  event_id uuid not null,
  occurred_at timestamptz not null,
  attempt integer not null default 1,
  due_at timestamptz not null
);
create index webhook_delivery_by_webhook on webhook_delivery (webhook_id, due_at);

-- Attempts that ended, one row each. Partitions are created and dropped by month, like the partitions of events.
create table webhook_attempt (
  id uuid not null,
  occurred_at timestamptz not null,
  webhook_id text not null,
  event_id uuid not null,
  event_occurred_at timestamptz not null,
  event_type text not null,
  attempt integer not null,
  response_status integer,
  error_message text,
  delivered_at timestamptz,
  duration_ms integer not null,
  primary key (id, occurred_at)
) partition by range (occurred_at);
create table webhook_attempt_default partition of webhook_attempt default;
create index webhook_attempt_by_webhook on webhook_attempt (webhook_id, occurred_at desc, id desc);

-- Time since which all attempts of an endpoint have failed; null while attempts succeed.
create table webhook_health (
  webhook_id text primary key,
  failing_since timestamptz
);
