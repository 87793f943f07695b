-- Five minutes of samples: what a chart of a week is drawn from.
create table sample_five_minutes (
  like sample_minute including constraints,
  primary key (machine_id, time)
) partition by range (time);
