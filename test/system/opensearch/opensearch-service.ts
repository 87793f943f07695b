import { Agent } from "node:https";
import type { LookupFunction } from "node:net";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { RunningService } from "@holdfast/testing/platform/services.ts";
import { Client, errors } from "@opensearch-project/opensearch";

interface SearchLogin {
  readonly user?: string;
  readonly password?: string;
}

/**
 * OpenSearch's own client, which resolves the service's name for each connection and verifies the certificate's name.
 * The caller closes it.
 */
export function openSearch(
  platform: Platform,
  { connection, password: ofDefaultUser }: RunningService,
  { user = connection.user, password = ofDefaultUser }: SearchLogin = {},
): Client {
  const { host, port, ca_certificate: ca } = connection;
  const lookup: LookupFunction = (name, { all }, done) => {
    addressOf(platform, name).then(
      (address) => (all === true ? done(null, [{ address, family: 4 }]) : done(null, address, 4)),
      (error: unknown) => done(error instanceof Error ? error : new Error(String(error)), ""),
    );
  };
  return new Client({
    node: `https://${host}:${port}`,
    auth: { username: user, password },
    agent: () => new Agent({ ca, lookup, keepAlive: true }),
    maxRetries: 0,
    requestTimeout: 30_000,
  });
}

/** Status of a refused call; undefined for one that succeeds. */
export async function statusOf(work: Promise<unknown>): Promise<number | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    if (error instanceof errors.ResponseError) return error.statusCode ?? 0;
    throw error;
  }
}
