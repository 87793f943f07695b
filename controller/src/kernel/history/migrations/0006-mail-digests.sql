-- Events that a channel of mail is told of in one mail, until a server took it.
create table mail_digest (
  place bigint generated always as identity primary key,
  channel_id text not null,
  event_id uuid not null,
  occurred_at timestamptz not null,
  unique (channel_id, event_id)
);
