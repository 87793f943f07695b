-- Usage of models by applications, per hour; retained for 25 months.
create table inference_usage (
  hour timestamptz not null,
  organization_id text not null,
  key_id text not null,
  model text not null,
  provider text not null,
  requests bigint not null,
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cost_microcents bigint not null,
  estimated_requests bigint not null,
  primary key (hour, organization_id, key_id, model, provider)
);
create index inference_usage_of_organization on inference_usage (organization_id, hour);

-- Batches of settlements that are included in inference_usage, by process of the proxy, so that a repeated batch is not
-- counted again.
create table inference_batch (
  process_id text not null,
  batch bigint not null,
  primary key (process_id, batch)
);
