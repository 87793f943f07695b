import { createHash } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { createTokenBuckets, type TokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";
import { type App, clientOf } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, json } from "../http/messages.ts";
import { type TokenCredentials, readTokenCredentials } from "./token-credentials.ts";
import { grantTokens } from "./token.ts";

/** Failures of one source with one client, at the token endpoint of one app, in a minute. */
const maxFailures = 50;
const minuteMs = 60_000;
/** Failures of one issued code or token family in a minute. */
const maxGrantFailures = 10;
const maxCounts = 20_000;
/**
 * Rate of failures of an app that are stored, so that all replicas count them; above it each replica counts for itself.
 */
const sharedFailureRate = { burst: 200, perSecond: 1 };

/**
 * Serializes the guesses of a source with a client, so that concurrent guesses at all replicas see each other's rows.
 */
const lockGuesses = `SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(' ', 'holdfast guesses', $1::text, $2::text), 0))`;

/**
 * Counts the guesses of the source with the client within a minute, and stores this one unless they have reached the
 * limit. `wait_s` is null below the limit.
 */
const writeGuess = `
  WITH before AS (
      SELECT occurred_at FROM ${s}.events
      WHERE type = 'token.refused' AND ip = $2 AND client_id IS NOT DISTINCT FROM $1 AND occurred_at > now() - interval '1 minute'
      ORDER BY occurred_at DESC LIMIT ${maxFailures}),
    counted AS (SELECT count(*) >= ${maxFailures} AS is_full, min(occurred_at) AS oldest FROM before),
    event AS (
      INSERT INTO ${s}.events (type, client_id, ip) SELECT 'token.refused', $1, $2 FROM counted WHERE NOT is_full)
  SELECT CASE WHEN is_full THEN ceil(extract(epoch FROM oldest + interval '1 minute' - now()))::int END AS wait_s
  FROM counted`;

/**
 * Serves token requests, and delays clients with too many failures. A secret, code or token that this app did not issue
 * is a guess and counts for its source and client. An issued code or token that has expired or was used counts only for
 * itself, so it does not delay its client or others at the same address. A guess is counted before it is checked, so
 * concurrent guesses do not exceed the limit.
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

  /**
   * Counts a guess for all replicas, unless the rate limit or an unavailable database prevents it. Returns the seconds
   * until it may be checked; 0 if it may be checked now.
   */
  async function countGuess(
    app: App,
    { source, isSharedSource }: IncomingRequest,
    credentials: TokenCredentials,
    key: string,
  ): Promise<number> {
    if (isSharedSource) return 0;
    const window = countFailure(key);
    if (window.failures >= maxFailures) setBounded(delayedUntilMs, key, window.untilMs);
    const { appId } = app.config;
    const bucket = writing.get(appId) ?? createTokenBuckets(sharedFailureRate, monotonicMs, 1);
    writing.set(appId, bucket);
    if (bucket.admits("", 1)) {
      const client = clientOf(app, credentials.clientId);
      const values = [client?.clientId ?? null, source];
      const [count] = await app.database
        .transaction(async (rows) => {
          await rows(lockGuesses, values);
          return rows<{ wait_s: number | null }>(writeGuess, values);
        })
        .catch(() => []);
      if (typeof count?.wait_s === "number") {
        const untilMs = monotonicMs() + Math.max(count.wait_s, 1) * 1_000;
        setBounded(delayedUntilMs, key, Math.max(untilMs, delayedUntilMs.get(key) ?? 0));
        return waitS(key);
      }
    }
    return 0;
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
      if (!isProved) {
        const guessWaitS = await countGuess(app, incoming, credentials, key);
        if (guessWaitS > 0) return { response: tooMany(guessWaitS), isProved };
      }
      const response = await grantTokens(app, incoming, credentials);
      if (credentials.issuedGrant !== undefined && (response.status === 400 || response.status === 401)) {
        const window = countFailure(key);
        if (window.failures >= maxGrantFailures) setBounded(delayedUntilMs, key, window.untilMs);
      }
      return { response, isProved };
    },
  };
}

function setBounded<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > maxCounts && oldest.done !== true) map.delete(oldest.value);
}

function tooMany(waitS: number): OutgoingResponse {
  const refused = json(429, { error: "slow_down", error_description: "too many requests failed" });
  return { ...refused, headers: { ...refused.headers, "retry-after": String(Math.ceil(waitS)) } };
}
