-- State of each export integration. A controller that takes over an integration raises `epoch`, and only writes with
-- the newest epoch are applied. Times are milliseconds since 1970.
create table export_state (
  export_id uuid primary key,
  epoch bigint not null default 1,
  consecutive_failures integer not null default 0,
  failing_since_ms bigint,
  -- True: the failures were announced, so their end must be announced as well.
  told boolean not null default false,
  last_error text,
  last_attempt_ms bigint,
  last_export_ms bigint,
  -- Time up to which everything was delivered; null while nothing waits.
  behind_since_ms bigint,
  samples bigint not null default 0,
  log_entries bigint not null default 0,
  too_old bigint not null default 0,
  refused bigint not null default 0,
  gone bigint not null default 0,
  gone_segments bigint not null default 0
);

-- Position of each stream of each machine: the time of the newest exported sample in milliseconds since 1970, or the
-- position in the engine's log after the newest exported entry.
create table export_cursor (
  export_id uuid not null references export_state on delete cascade,
  machine_id uuid not null,
  stream text not null,
  service_id uuid not null,
  position text not null,
  primary key (export_id, machine_id, stream)
);
