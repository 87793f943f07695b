-- Events that wait for the next mail of a mail channel: until a mail server accepted a mail with them.
create table mail_digest (
  place bigint generated always as identity primary key,
  channel_id text not null,
  event_id uuid not null,
  occurred_at timestamptz not null,
  unique (channel_id, event_id)
);
