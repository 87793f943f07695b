-- What machines were like. A value's place in an array is its metric's slot in the catalog of metrics; null is no value.
-- There are no default partitions: what no partition is there for waits with the machine that told it.

-- As it was told, once for each machine and time.
create table sample (
  machine_id uuid not null,
  time timestamptz not null,
  vals float8[] not null,
  primary key (machine_id, time)
) partition by range (time);

-- A minute of samples, and an hour of minutes, each with how many values it is made of.
create table sample_minute (
  machine_id uuid not null,
  time timestamptz not null,
  counts smallint[] not null,
  sums float8[] not null,
  mins float8[] not null,
  maxs float8[] not null,
  primary key (machine_id, time)
) partition by range (time);

create table sample_hour (
  machine_id uuid not null,
  time timestamptz not null,
  counts smallint[] not null,
  sums float8[] not null,
  mins float8[] not null,
  maxs float8[] not null,
  primary key (machine_id, time)
) partition by range (time);

-- Hours of machines that have samples which are not rolled up. Whoever adds samples raises `marks`, so that it waits for
-- whoever takes the hour away, and the other way round.
create table sample_stale (
  machine_id uuid not null,
  hour timestamptz not null,
  marks integer not null default 1,
  primary key (machine_id, hour)
) with (fillfactor = 50);
