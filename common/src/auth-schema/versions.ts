import { authSchema as s } from "./names.ts";

/**
 * Version 1: nine tables, whose rows reference `users` or expire. Secrets are stored as hashes. No statement of the
 * issuer violates a constraint whose error message would contain an address.
 */
const version1: readonly string[] = [
  `CREATE TABLE ${s}.users (
     id uuid PRIMARY KEY,
     email text NOT NULL UNIQUE,
     email_verified boolean NOT NULL DEFAULT false,
     created_at timestamptz NOT NULL DEFAULT now(),
     last_sign_in_at timestamptz)`,
  `CREATE TABLE ${s}.identities (
     id uuid PRIMARY KEY,
     user_id uuid NOT NULL REFERENCES ${s}.users ON DELETE CASCADE,
     provider text NOT NULL,
     issuer text NOT NULL,
     subject text NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now(),
     UNIQUE (issuer, subject))`,
  `CREATE INDEX ON ${s}.identities (user_id)`,
  `CREATE TABLE ${s}.sessions (
     id uuid PRIMARY KEY,
     user_id uuid NOT NULL REFERENCES ${s}.users ON DELETE CASCADE,
     secret_hash bytea NOT NULL UNIQUE,
     auth_time timestamptz NOT NULL,
     amr text[] NOT NULL,
     ip text,
     user_agent text,
     created_at timestamptz NOT NULL DEFAULT now(),
     last_seen_at timestamptz NOT NULL DEFAULT now(),
     expires_at timestamptz NOT NULL,
     revoked_at timestamptz)`,
  `CREATE INDEX ON ${s}.sessions (user_id)`,
  `CREATE INDEX ON ${s}.sessions (expires_at)`,
  `CREATE TABLE ${s}.refresh_tokens (
     family uuid PRIMARY KEY,
     user_id uuid NOT NULL REFERENCES ${s}.users ON DELETE CASCADE,
     session_id uuid NOT NULL REFERENCES ${s}.sessions ON DELETE CASCADE,
     client_id text NOT NULL,
     scope text NOT NULL,
     generation integer NOT NULL DEFAULT 1,
     rotated_at timestamptz NOT NULL DEFAULT now(),
     created_at timestamptz NOT NULL DEFAULT now(),
     expires_at timestamptz NOT NULL,
     ended_at timestamptz)`,
  `CREATE INDEX ON ${s}.refresh_tokens (user_id)`,
  `CREATE INDEX ON ${s}.refresh_tokens (session_id)`,
  `CREATE INDEX ON ${s}.refresh_tokens (expires_at)`,
  `CREATE TABLE ${s}.mfa_totp (
     user_id uuid PRIMARY KEY REFERENCES ${s}.users ON DELETE CASCADE,
     sealed_secret text NOT NULL,
     last_step bigint NOT NULL DEFAULT 0,
     failures integer NOT NULL DEFAULT 0,
     failed_at timestamptz,
     created_at timestamptz NOT NULL DEFAULT now(),
     confirmed_at timestamptz)`,
  `CREATE TABLE ${s}.mfa_recovery_codes (
     user_id uuid NOT NULL REFERENCES ${s}.users ON DELETE CASCADE,
     code_hash bytea NOT NULL,
     used_at timestamptz,
     PRIMARY KEY (user_id, code_hash))`,
  `CREATE TABLE ${s}.login_tokens (
     id uuid PRIMARY KEY,
     email text NOT NULL,
     interaction_hash bytea NOT NULL,
     source text NOT NULL,
     is_known boolean NOT NULL,
     is_owed boolean NOT NULL,
     tries integer NOT NULL DEFAULT 0,
     created_at timestamptz NOT NULL DEFAULT now(),
     expires_at timestamptz NOT NULL,
     sent_at timestamptz,
     ended_at timestamptz)`,
  `CREATE INDEX ON ${s}.login_tokens (email, created_at)`,
  `CREATE INDEX ON ${s}.login_tokens (source, created_at)`,
  `CREATE INDEX ON ${s}.login_tokens (created_at)`,
  `CREATE TABLE ${s}.oauth_codes (
     code_hash bytea PRIMARY KEY,
     user_id uuid NOT NULL REFERENCES ${s}.users ON DELETE CASCADE,
     session_id uuid NOT NULL REFERENCES ${s}.sessions ON DELETE CASCADE,
     client_id text NOT NULL,
     redirect_uri text NOT NULL,
     scope text NOT NULL,
     nonce text,
     code_challenge text,
     family uuid NOT NULL,
     created_at timestamptz NOT NULL DEFAULT now(),
     expires_at timestamptz NOT NULL,
     used_at timestamptz)`,
  `CREATE INDEX ON ${s}.oauth_codes (user_id)`,
  `CREATE INDEX ON ${s}.oauth_codes (session_id)`,
  `CREATE INDEX ON ${s}.oauth_codes (expires_at)`,
  `CREATE TABLE ${s}.events (
     id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     type text NOT NULL,
     occurred_at timestamptz NOT NULL DEFAULT now(),
     user_id uuid,
     client_id text,
     ip text,
     user_agent text)`,
  `CREATE INDEX ON ${s}.events (user_id)`,
  `CREATE INDEX ON ${s}.events (occurred_at)`,
];

/**
 * Version 2: only indexes, so issuers of either version run the same statements. They serve the counts of limits and
 * the deletions of upkeep.
 */
const version2: readonly string[] = [
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

/** Statements of each version of the schema, the first version first. A released version never changes. */
export const authSchemaVersions: readonly (readonly string[])[] = [version1, version2];
