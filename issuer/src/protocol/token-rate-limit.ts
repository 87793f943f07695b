import { createHash } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { createTokenBuckets, type TokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";
import { type App, clientOf } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, json } from "../http/messages.ts";
import { type TokenCredentials, readTokenCredentials } from "./token-credentials.ts";
import { grantTokens } from "./token.ts";

/** Failures of one source with one client, at the token endpoint of one app, in a minute. */
const failuresMax = 50;
const minuteMs = 60_000;
/** Failures of one issued code or token family in a minute. */
const spentMax = 10;
const countsMax = 20_000;
/**
 * Rate of failures of an app that are stored, so that all replicas count them; above it each replica counts for itself.
 */
const sharedFailureRate = { burst: 200, perSecond: 1 };

/** Stores a failure, and counts those of the source with the client within a minute. */
const writeFailure = `
  WITH event AS (INSERT INTO ${s}.events (type, client_id, ip) VALUES ('token.refused', $1, $2)),
    before AS (
      SELECT occurred_at FROM ${s}.events
      WHERE type = 'token.refused' AND ip = $2 AND client_id IS NOT DISTINCT FROM $1 AND occurred_at > now() - interval '1 minute'
      ORDER BY occurred_at DESC LIMIT ${failuresMax - 1})
  SELECT count(*)::int + 1 AS failures,
    ceil(extract(epoch FROM min(occurred_at) + interval '1 minute' - now()))::int AS wait_s FROM before`;

/**
 * Serves token requests, and delays clients with too many failures. A secret, code or token that this app did not issue
 * is a guess and counts for its source and client. An issued code or token that has expired or was used counts only for
 * itself, so it does not delay its client or others at the same address.
 */
export interface TokenRateLimit {
  /**
   * `isProved`: the request has a valid secret, code or token, so it does not count as a request without credentials.
   */
  respond(
    app: App,
    incoming: IncomingRequest,
  ): Promise<{ readonly response: OutgoingResponse; readonly isProved: boolean }>;
}

interface Window {
  failures: number;
  readonly untilMs: number;
}

export function createTokenRateLimit(monotonicMs: () => number): TokenRateLimit {
  /** Failures by app, client and source, and by app and code or family; the oldest entry is dropped first. */
  const windows = new Map<string, Window>();
  /** Time of the next allowed attempt by key. */
  const delayedUntilMs = new Map<string, number>();
  const writing = new Map<string, TokenBuckets>();

  function countFailure(key: string): Window {
    const nowMs = monotonicMs();
    const existing = windows.get(key);
    const window =
      existing !== undefined && existing.untilMs > nowMs ? existing : { failures: 0, untilMs: nowMs + minuteMs };
    window.failures += 1;
    setBounded(windows, key, window);
    return window;
  }

  function waitS(key: string): number {
    return Math.max(0, ((delayedUntilMs.get(key) ?? 0) - monotonicMs()) / 1_000);
  }

  /** Counts a guess for all replicas, unless the rate limit or an unavailable database prevents it. */
  async function countGuess(
    app: App,
    { source, isSharedSource }: IncomingRequest,
    credentials: TokenCredentials,
    key: string,
  ): Promise<void> {
    if (isSharedSource) return;
    const window = countFailure(key);
    let untilMs = window.failures >= failuresMax ? window.untilMs : 0;
    const { appId } = app.config;
    const bucket = writing.get(appId) ?? createTokenBuckets(sharedFailureRate, monotonicMs, 1);
    writing.set(appId, bucket);
    if (bucket.admits("", 1)) {
      const client = clientOf(app, credentials.clientId);
      const values = [client?.clientId ?? null, source];
      const [count] = await app.database
        .rows<{ failures: number; wait_s: number | null }>(writeFailure, values)
        .catch(() => []);
      if (count !== undefined && count.failures >= failuresMax)
        untilMs = Math.max(untilMs, monotonicMs() + Math.max(count.wait_s ?? 1, 1) * 1_000);
    }
    if (untilMs > 0) setBounded(delayedUntilMs, key, untilMs);
  }

  return {
    async respond(app, incoming) {
      const credentials = readTokenCredentials(app, incoming);
      const { appId } = app.config;
      const key =
        credentials.issuedGrant === undefined
          ? `${appId} ${credentials.clientId} ${incoming.source}`
          : `${appId} ${createHash("sha256").update(credentials.issuedGrant).digest("base64url")}`;
      const isProved = credentials.isAuthenticated || credentials.issuedGrant !== undefined;
      const isCounted = credentials.issuedGrant !== undefined || !credentials.isAuthenticated;
      if (isCounted && waitS(key) > 0) return { response: tooMany(waitS(key)), isProved: false };
      const response = await grantTokens(app, incoming, credentials);
      if (isCounted && (response.status === 400 || response.status === 401)) {
        if (credentials.issuedGrant === undefined) await countGuess(app, incoming, credentials, key);
        else {
          const window = countFailure(key);
          if (window.failures >= spentMax) setBounded(delayedUntilMs, key, window.untilMs);
        }
      }
      return { response, isProved };
    },
  };
}

function setBounded<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > countsMax && oldest.done !== true) map.delete(oldest.value);
}

function tooMany(waitS: number): OutgoingResponse {
  const refused = json(429, { error: "slow_down", error_description: "too many requests failed" });
  return { ...refused, headers: { ...refused.headers, "retry-after": String(Math.ceil(waitS)) } };
}
