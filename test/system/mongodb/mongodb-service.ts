import type { LookupFunction } from "node:net";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { openMongodb } from "@holdfast/testing/engines/mongodb-clients.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { RunningService } from "@holdfast/testing/platform/services.ts";
import { type Db, type MongoClientOptions, MongoServerError } from "mongodb";

interface MongodbLogin {
  readonly user?: string;
  readonly password?: string;
  /** Host name of the service, or of one of its nodes. */
  readonly host?: string;
}

/** The default database of a service, by a new client that verifies the certificate's name. The caller closes it. */
export async function openDocuments(
  platform: Platform,
  { connection, password: ofDefaultUser }: RunningService,
  { user = connection.user, password = ofDefaultUser, host = connection.host }: MongodbLogin = {},
  options: MongoClientOptions = {},
): Promise<Db> {
  const address = await addressOf(platform, host);
  const target = { ca: connection.ca_certificate, address, port: connection.port, serverName: host };
  return openMongodb(target, { user, password }, options).db(connection.database);
}

/**
 * The default database of a service, by a client that resolves the service's name for each connection, as those of
 * users do. The caller closes it.
 */
export function followDocuments(platform: Platform, { connection, password }: RunningService): Db {
  const { host, port, ca_certificate: ca, user, database } = connection;
  const lookup: LookupFunction = (name, { all }, done) => {
    addressOf(platform, name).then(
      (address) => (all === true ? done(null, [{ address, family: 4 }]) : done(null, address, 4)),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), ""),
    );
  };
  const target = { ca, address: host, port, serverName: host };
  return openMongodb(target, { user, password, from: "127.0.0.1" }, { lookup }).db(database);
}

/** Result of work on a service's default database in a new connection. */
export async function documentsOnce<T>(
  platform: Platform,
  service: RunningService,
  work: (database: Db) => Promise<T>,
  login: MongodbLogin = {},
): Promise<T> {
  const database = await openDocuments(platform, service, login);
  try {
    return await work(database);
  } finally {
    await database.client.close();
  }
}

/** Code of the server's error; the driver wraps some of them. Undefined if there is none. */
export async function codeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (!(error instanceof MongoServerError)) return error;
    const original: unknown = error["originalError"];
    return original instanceof MongoServerError ? original.code : error.code;
  }
}
