import { createHash } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { createTokenBuckets, type TokenBuckets } from "@holdfast/common/token-bucket.ts";
import { type App, clientOf } from "../app.ts";
import { type Answer, type Asked, json } from "../http/exchange.ts";
import { type Presented, presentedOf } from "./presented.ts";
import { granted } from "./token.ts";

/** Of one source with one client, at the token endpoint of one app, in a minute. */
const failuresMax = 50;
const minuteMs = 60_000;
/** Failures of one code or family of tokens that was ours, in a minute. */
const deadMax = 10;
const countsMax = 20_000;
/** Failures of an app that are written where all replicas count them; past it each counts for itself. */
const written = { burst: 200, perSecond: 1 };

/** Writes a failure down, and answers how many there are of the source with the client within a minute. */
const writeFailure = `
  WITH told AS (INSERT INTO ${s}.events (type, client_id, ip) VALUES ('token.refused', $1, $2)),
    before AS (
      SELECT occurred_at FROM ${s}.events
      WHERE type = 'token.refused' AND ip = $2 AND client_id IS NOT DISTINCT FROM $1 AND occurred_at > now() - interval '1 minute'
      ORDER BY occurred_at DESC LIMIT ${failuresMax - 1})
  SELECT count(*)::int + 1 AS failures,
    ceil(extract(epoch FROM min(occurred_at) + interval '1 minute' - now()))::int AS wait_s FROM before`;

/**
 * Answers token requests, and delays the next of those that fail too often. A secret, code or token that
 * this app never handed out is a guess, and counts for its source and client. A code or token that was handed out and is over counts for
 * itself alone: neither its client nor others at its address wait for that.
 */
export interface TokenPace {
  /** `isProved`: the request has a secret, code or token of the app, and does not count as one without a credential. */
  answer(app: App, asked: Asked): Promise<{ readonly answer: Answer; readonly isProved: boolean }>;
}

interface Window {
  failures: number;
  readonly untilMs: number;
}

export function createTokenPace(monotonicMs: () => number): TokenPace {
  /** Failures by app, client and source; by app and code or family. The oldest goes first. */
  const windows = new Map<string, Window>();
  /** When each may try again. */
  const delayed = new Map<string, number>();
  const writing = new Map<string, TokenBuckets>();

  function fail(key: string): Window {
    const nowMs = monotonicMs();
    const known = windows.get(key);
    const window = known !== undefined && known.untilMs > nowMs ? known : { failures: 0, untilMs: nowMs + minuteMs };
    window.failures += 1;
    bounded(windows, key, window);
    return window;
  }

  function waitS(key: string): number {
    return Math.max(0, ((delayed.get(key) ?? 0) - monotonicMs()) / 1_000);
  }

  /** Counts for all replicas as far as rows may be written; none are where the database is away. */
  async function guessed(app: App, { source, isShared }: Asked, presented: Presented, key: string): Promise<void> {
    if (isShared) return;
    const window = fail(key);
    let untilMs = window.failures >= failuresMax ? window.untilMs : 0;
    const { appId } = app.config;
    const bucket = writing.get(appId) ?? createTokenBuckets(written, monotonicMs, 1);
    writing.set(appId, bucket);
    if (bucket.admits("", 1)) {
      const client = clientOf(app, presented.clientId);
      const values = [client?.clientId ?? null, source];
      const [count] = await app.database
        .rows<{ failures: number; wait_s: number | null }>(writeFailure, values)
        .catch(() => []);
      if (count !== undefined && count.failures >= failuresMax)
        untilMs = Math.max(untilMs, monotonicMs() + Math.max(count.wait_s ?? 1, 1) * 1_000);
    }
    if (untilMs > 0) bounded(delayed, key, untilMs);
  }

  return {
    async answer(app, asked) {
      const presented = presentedOf(app, asked);
      const { appId } = app.config;
      const key =
        presented.handedOut === undefined
          ? `${appId} ${presented.clientId} ${asked.source}`
          : `${appId} ${createHash("sha256").update(presented.handedOut).digest("base64url")}`;
      const isProved = presented.isAuthenticated || presented.handedOut !== undefined;
      const isCounted = presented.handedOut !== undefined || !presented.isAuthenticated;
      if (isCounted && waitS(key) > 0) return { answer: tooMany(waitS(key)), isProved: false };
      const answer = await granted(app, asked, presented);
      if (isCounted && (answer.status === 400 || answer.status === 401)) {
        if (presented.handedOut === undefined) await guessed(app, asked, presented, key);
        else {
          const window = fail(key);
          if (window.failures >= deadMax) bounded(delayed, key, window.untilMs);
        }
      }
      return { answer, isProved };
    },
  };
}

function bounded<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > countsMax && oldest.done !== true) map.delete(oldest.value);
}

function tooMany(waitS: number): Answer {
  const refused = json(429, { error: "slow_down", error_description: "too many requests failed" });
  return { ...refused, headers: { ...refused.headers, "retry-after": String(Math.ceil(waitS)) } };
}
