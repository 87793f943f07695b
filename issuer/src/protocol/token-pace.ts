import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { type App, clientOf } from "../app.ts";
import { type Answer, type Asked, json } from "../http/exchange.ts";
import { token } from "./token.ts";

/** Of one source, at the token endpoint of one app, in a minute. */
const failuresMax = 50;
const sourcesMax = 20_000;

/**
 * Writes a failure down, and says how many there are. They are counted where all replicas see them; each holds a source up by
 * itself from its next failure on.
 */
const failed = `
  WITH told AS (INSERT INTO ${s}.events (type, client_id, ip) VALUES ('token.refused', $1, $2)),
    before AS (
      SELECT occurred_at FROM ${s}.events
      WHERE type = 'token.refused' AND ip = $2 AND occurred_at > now() - interval '1 minute'
      ORDER BY occurred_at DESC LIMIT ${failuresMax - 1})
  SELECT count(*)::int + 1 AS failures,
    ceil(extract(epoch FROM min(occurred_at) + interval '1 minute' - now()))::int AS wait_s FROM before`;

/** Answers token requests, and holds those up who fail too often. */
export interface TokenPace {
  answer(app: App, asked: Asked): Promise<Answer>;
}

export function createTokenPace(monotonicMs: () => number): TokenPace {
  /** When each source may try again, by app and source. */
  const held = new Map<string, number>();

  return {
    async answer(app, asked) {
      const key = `${app.config.appId} ${asked.source}`;
      const leftMs = (held.get(key) ?? 0) - monotonicMs();
      if (leftMs > 0) return tooMany(leftMs / 1_000);
      held.delete(key);
      const answered = await token(app, asked);
      if (answered.status !== 400 && answered.status !== 401) return answered;
      const client = clientOf(app, asked.form.get("client_id") ?? undefined);
      const [count] = await app.database.rows<{ failures: number; wait_s: number | null }>(failed, [
        client?.clientId ?? null,
        asked.source,
      ]);
      if (count !== undefined && count.failures >= failuresMax) {
        if (held.size >= sourcesMax) held.clear();
        held.set(key, monotonicMs() + Math.max(count.wait_s ?? 1, 1) * 1_000);
      }
      return answered;
    },
  };
}

function tooMany(waitS: number): Answer {
  const refused = json(429, { error: "slow_down", error_description: "too many requests failed" });
  return { ...refused, headers: { ...refused.headers, "retry-after": String(Math.ceil(waitS)) } };
}
