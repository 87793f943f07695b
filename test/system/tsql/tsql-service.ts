import { addressOf, openPostgresql } from "@holdfast/testing/api/clients.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { RunningService } from "@holdfast/testing/platform/services.ts";
import { connectTds, type TdsClient, type TdsResult } from "@holdfast/testing/servers/tds-client.ts";

interface TdsLogin {
  readonly user?: string;
  readonly password?: string;
  /** Host name of the service, or of one of its nodes. */
  readonly host?: string;
  /** `defaultdb` by default. */
  readonly database?: string;
}

/** Signs in to a service over TDS. The caller closes the client. */
export async function openTds(platform: Platform, service: RunningService, login: TdsLogin = {}): Promise<TdsClient> {
  const { port, ca_certificate: certificate } = service.connection;
  const { user = service.connection.user, password = service.password, host = service.connection.host } = login;
  const at = { host, address: await addressOf(platform, host) };
  const options = login.database === undefined ? {} : { database: login.database };
  return connectTds({ server: { port }, certificate, user, password, at }, { options });
}

/** Results of a batch in a new session. */
export async function batchOnce(
  platform: Platform,
  service: RunningService,
  sql: string,
  login: TdsLogin = {},
): Promise<TdsResult> {
  const client = await openTds(platform, service, login);
  try {
    return await client.batch(sql);
  } finally {
    await client.close();
  }
}

/** Rows by PostgreSQL's own protocol, at its port. */
export async function rowsOnce(platform: Platform, service: RunningService, sql: string): Promise<object[]> {
  const connection = { ...service.connection, port: 5432 };
  const client = await openPostgresql(platform, connection, { password: service.password });
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
