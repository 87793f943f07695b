-- Erased users of apps, and ended sessions of users: a restore to an earlier time erases and ends them again. The table
-- only has ids.
create table auth_erasure (
  organization_id text not null,
  -- 'user' or 'session'
  kind text not null,
  subject uuid not null,
  erased_at timestamptz not null,
  primary key (organization_id, kind, subject)
);
