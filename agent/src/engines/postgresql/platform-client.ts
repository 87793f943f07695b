import { type SessionSettings, startupOptions } from "@holdfast/common/postgresql/session-settings.ts";
import pg from "pg";
import type { Instance } from "../engine-driver.ts";
import { platform } from "./layout.ts";

export type { FieldDef, QueryArrayConfig, QueryResult } from "pg";

/** A statement whose rows are taken as they come. */
export const StreamedQuery = pg.Query;
export const { escapeIdentifier, escapeLiteral } = pg;

export interface ClientOptions {
  readonly user: string;
  readonly database: string;
  readonly settings?: SessionSettings;
  /** How values of columns are read; as their types say when absent. */
  readonly types?: pg.CustomTypesConfig;
}

/**
 * The one way to a session of the engine: through its socket, with the settings that all sessions of the platform have. The lint
 * refuses another import of pg.
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
 * Beside those of every session: what only the superuser of the platform may set. Its statements are not printed, as they carry
 * verifiers.
 */
// oxlint-disable-next-line holdfast/own-keys -- read by its entries
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

/** A walsender: it takes none of the sessions that users or the platform have. */
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

/** PgBouncer's own console: no engine answers there, and it takes no settings. */
export function poolerConsoleClient(instance: Instance): pg.Client {
  const port = instance.spec.pooler?.port ?? 0;
  return new pg.Client({ ...socketOf(instance, port), user: platform, database: "pgbouncer" });
}

function socketOf({ paths }: Instance, port: number): pg.ClientConfig {
  return { host: paths.run, port };
}

/** The owner of a database can have a superuser's sessions begin as another role; it comes before `role`, which it resets. */
function optionsAs(user: string, settings?: SessionSettings): string {
  return `-c session_authorization=${user} ${startupOptions(settings)}`;
}

/** For a program of the engine that connects by libpq as the superuser. */
export function programEnvironment(): Readonly<Record<string, string>> {
  return { LC_ALL: "C", TZ: "UTC", PGOPTIONS: optionsAs(platform, superuserSettings) };
}
