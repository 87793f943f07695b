-- Samples of machines' metrics. The index of a value in its array is the metric's slot in the metric catalog
-- (common/src/metric-catalog.ts), from 1; null: no value. There are no default partitions: a sample of a time without a
-- partition is refused and remains in the spool of its machine.

-- Raw samples as agents report them, one row for each machine and time.
create table sample (
  machine_id uuid not null,
  time timestamptz not null,
  vals float8[] not null,
  primary key (machine_id, time)
) partition by range (time);

-- Roll-ups of samples to minutes, and to hours. `counts` has the number of values of each metric.
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

-- Hours of machines with samples that are not rolled up. An insert of samples raises `marks`, and a roll-up deletes the
-- row of its hour. Both lock the row, so that no sample is missed.
create table sample_stale (
  machine_id uuid not null,
  hour timestamptz not null,
  marks integer not null default 1,
  primary key (machine_id, hour)
) with (fillfactor = 50);
