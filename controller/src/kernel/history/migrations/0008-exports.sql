-- How each integration does. Whoever works on it raises `epoch`, and only writes of the newest epoch count. Times are
-- milliseconds since 1970.
create table export_state (
  export_id uuid primary key,
  epoch bigint not null default 1,
  consecutive_failures integer not null default 0,
  failing_since_ms bigint,
  -- The failures are announced, and their end has to be.
  told boolean not null default false,
  last_error text,
  last_attempt_ms bigint,
  last_export_ms bigint,
  -- Up to then all was delivered; null while nothing waits.
  behind_since_ms bigint,
  samples bigint not null default 0,
  log_entries bigint not null default 0,
  too_old bigint not null default 0,
  refused bigint not null default 0,
  gone bigint not null default 0,
  gone_segments bigint not null default 0
);

-- How far each stream of each machine is: milliseconds since 1970 of the newest sample that was taken, or the position in
-- the engine's log behind the newest entry that was.
create table export_cursor (
  export_id uuid not null references export_state on delete cascade,
  machine_id uuid not null,
  stream text not null,
  service_id uuid not null,
  position text not null,
  primary key (export_id, machine_id, stream)
);
