-- Roll-ups of samples to five minutes, for charts of a week.
create table sample_five_minutes (
  like sample_minute including constraints,
  primary key (machine_id, time)
) partition by range (time);
