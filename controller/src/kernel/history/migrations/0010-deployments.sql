-- Ended deployments, launches and migrations of bundles, except the latest one of each bundle; retained for 400 days.
-- The record is sealed.
create table deployment (
  id uuid primary key,
  composition_id uuid not null,
  type text not null,
  finished_at timestamptz not null,
  record text not null
);
create index deployment_of_composition on deployment (composition_id, id desc);
