-- Users of apps that were erased and sessions of theirs that were ended: what is done again over older data. Nothing but ids.
create table auth_erasure (
  organization_id text not null,
  -- 'user' or 'session'
  kind text not null,
  subject uuid not null,
  erased_at timestamptz not null,
  primary key (organization_id, kind, subject)
);
