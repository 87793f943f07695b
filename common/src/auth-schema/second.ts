import { authSchema as s } from "./names.ts";

/**
 * Version 2: indexes alone, so issuers that serve either version run the same statements. Rows that limits count, and rows that
 * upkeep removes, are found without a look at others.
 */
export const second: readonly string[] = [
  `CREATE INDEX login_tokens_of_users ON ${s}.login_tokens (created_at) WHERE is_owed AND is_known`,
  `CREATE INDEX login_tokens_of_strangers ON ${s}.login_tokens (created_at) WHERE is_owed AND NOT is_known`,
  `CREATE INDEX login_tokens_source_users ON ${s}.login_tokens (source, created_at) WHERE is_known`,
  `CREATE INDEX login_tokens_source_strangers ON ${s}.login_tokens (source, created_at) WHERE NOT is_known`,
  `CREATE INDEX login_tokens_unsent ON ${s}.login_tokens (created_at) WHERE is_owed AND sent_at IS NULL AND ended_at IS NULL`,
  `CREATE INDEX login_tokens_open ON ${s}.login_tokens (interaction_hash) WHERE ended_at IS NULL`,
  `CREATE INDEX refresh_tokens_ended ON ${s}.refresh_tokens (ended_at) WHERE ended_at IS NOT NULL`,
  `CREATE INDEX sessions_revoked ON ${s}.sessions (revoked_at) WHERE revoked_at IS NOT NULL`,
  `CREATE INDEX events_refused ON ${s}.events (ip, occurred_at) WHERE type = 'token.refused'`,
];
