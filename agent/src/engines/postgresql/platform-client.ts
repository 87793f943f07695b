import { type SessionSettings, startupOptions } from "@holdfast/common/postgresql/session-settings.ts";
import pg from "pg";
import type { Instance } from "../engine-driver.ts";
import { platform } from "./layout.ts";

export type { FieldDef, QueryArrayConfig, QueryResult } from "pg";

/** A statement whose rows are emitted as they arrive. */
export const StreamedQuery = pg.Query;
export const { escapeIdentifier, escapeLiteral } = pg;

export interface ClientOptions {
  readonly user: string;
  readonly database: string;
  readonly settings?: SessionSettings;
  /** Parsers of column values; by the columns' types if absent. */
  readonly types?: pg.CustomTypesConfig;
}

/**
 * The only way to open a session of the engine: over its socket, with the settings that all platform sessions have. The
 * linter rejects other imports of pg.
 */
export function platformClient(instance: Instance, { user, database, settings, types }: ClientOptions): pg.Client {
  return new pg.Client({
    ...socketOf(instance, instance.spec.port),
    user,
    database,
    application_name: user,
    options: optionsAs(user, settings),
    ...(types && { types }),
  });
}

/**
 * Settings that only a superuser may set, in addition to the settings of every session. Sessions of the agent have a
 * limit of temporary files (`openSession`); programs of the engine rebuild data and have none. Statements are not
 * logged, since they contain password verifiers.
 */
export const superuserSettings: SessionSettings = {
  session_replication_role: "origin",
  row_security: "off",
  temp_file_limit: "-1",
  track_activities: "off",
  "pg_stat_statements.track": "none",
  "auto_explain.log_min_duration": "-1",
  log_min_error_statement: "panic",
  lc_messages: "C",
};

/** A walsender, which counts against `max_wal_senders` and takes no connection of users or the platform. */
export function walsenderClient(instance: Instance): pg.Client {
  const config: pg.ClientConfig & { replication: string } = {
    ...socketOf(instance, instance.spec.port),
    user: platform,
    database: platform,
    application_name: platform,
    options: startupOptions(superuserSettings),
    replication: "true",
  };
  return new pg.Client(config);
}

/** Admin console of PgBouncer, which accepts no settings. */
export function poolerConsoleClient(instance: Instance): pg.Client {
  const port = instance.spec.pooler?.port ?? 0;
  return new pg.Client({ ...socketOf(instance, port), user: platform, database: "pgbouncer" });
}

function socketOf({ paths }: Instance, port: number): pg.ClientConfig {
  return { host: paths.run, port };
}

/**
 * The owner of a database can set `role` for all its sessions, a superuser's too. `session_authorization` resets it,
 * and so comes first.
 */
function optionsAs(user: string, settings?: SessionSettings): string {
  return `-c session_authorization=${user} ${startupOptions(settings)}`;
}

/** Environment of a program that connects by libpq as the superuser. */
export function programEnvironment(): Readonly<Record<string, string>> {
  return { LC_ALL: "C", TZ: "UTC", PGOPTIONS: optionsAs(platform, superuserSettings) };
}
