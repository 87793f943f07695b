-- Tables are partitioned by month, so that an old month is dropped as one partition. A default partition has the rows
-- of months without a partition.
create sequence history_sequence;

create table event (
  id uuid not null,
  occurred_at timestamptz not null,
  sequence bigint not null default nextval('history_sequence'),
  organization_id text not null,
  type text not null,
  object_kind text not null,
  object_id text not null,
  data jsonb not null,
  primary key (id, occurred_at)
) partition by range (occurred_at);
create table event_default partition of event default;
create index event_by_organization on event (organization_id, sequence);
create index event_by_object on event (object_id, sequence);

create table audit (
  id uuid not null,
  occurred_at timestamptz not null,
  sequence bigint not null default nextval('history_sequence'),
  organization_id text not null,
  actor text not null,
  source text not null,
  action text not null,
  object_kind text not null,
  object_id text not null,
  result text not null,
  request_id text not null,
  primary key (id, occurred_at)
) partition by range (occurred_at);
create table audit_default partition of audit default;
create index audit_by_organization on audit (organization_id, sequence);
create index audit_by_object on audit (object_id, sequence);

create table task_log (
  task_id text not null,
  line integer not null,
  occurred_at timestamptz not null,
  machine_id text not null,
  level text not null,
  message text not null,
  primary key (task_id, line, occurred_at)
) partition by range (occurred_at);
create table task_log_default partition of task_log default;
