-- Deployments, launches and migrations that ended and that another one followed; kept for 400 days. The record is sealed.
create table deployment (
  id uuid primary key,
  composition_id uuid not null,
  type text not null,
  finished_at timestamptz not null,
  record text not null
);
create index deployment_of_composition on deployment (composition_id, id desc);
