import { setTimeout as delay } from "node:timers/promises";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { App } from "./app.ts";
import { roomForMails } from "./sign-in/mail-limits.ts";
import type { MailWatch } from "./sign-in/mail-watch.ts";

const everyMs = 15_000;
const mailsAtOnce = 20;
/** Apps at a time: one whose database hangs delays few others. */
const appsAtOnce = 16;
const sweptAtOnce = 1_000;
/** More than is written in a round; the remainder goes in the next. */
const sweptInRound = 100;

/** Rows that nothing reads any more. Each condition has an index of its own, and each statement takes a bounded number. */
const sweeps: readonly string[] = [
  swept("login_tokens", "id", "created_at < now() - interval '1 day'"),
  swept("oauth_codes", "code_hash", "expires_at < now() - interval '1 hour'"),
  swept("refresh_tokens", "family", "expires_at < now()"),
  swept("refresh_tokens", "family", "ended_at < now() - interval '7 days'"),
  swept("sessions", "id", "expires_at < now()"),
  swept("sessions", "id", "revoked_at < now() - interval '30 days'"),
  swept("events", "id", "type = 'token.refused' AND occurred_at < now() - interval '1 hour'"),
  swept("events", "id", "occurred_at < now() - interval '400 days'"),
];

function swept(table: string, key: string, isOver: string): string {
  return `WITH gone AS (
    DELETE FROM ${s}.${table}
    WHERE ${key} = ANY (ARRAY (SELECT ${key} FROM ${s}.${table} WHERE ${isOver} LIMIT ${sweptAtOnce} FOR UPDATE SKIP LOCKED))
    RETURNING 1)
  SELECT count(*)::int AS count FROM gone`;
}

/** Sends mails that are still owed, and removes what is over, for every app; one whose database is away delays no other. */
export function startUpkeep({
  apps,
  mails,
  log,
}: {
  readonly apps: () => readonly App[];
  readonly mails: MailWatch;
  readonly log: Log;
}): { close(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  /** Ids of apps whose round is not over. */
  const underWay = new Map<string, Promise<void>>();

  async function sweep({ database }: App, statement: string): Promise<void> {
    for (let times = 0; times < sweptInRound && !signal.aborted; times += 1) {
      const [gone] = await database.tokens.rows<{ count: number }>(statement);
      if ((gone?.count ?? 0) < sweptAtOnce) return;
    }
  }

  async function keep(app: App): Promise<void> {
    const { database, config } = app;
    for (const statement of sweeps) await sweep(app, statement);
    if (config.mailLimited) mails.found(app, await roomForMails(app));
    const owed = await database.tokens.rows<{ id: string }>(
      `SELECT id FROM ${s}.login_tokens WHERE is_owed AND sent_at IS NULL AND ended_at IS NULL AND expires_at > now()
         AND created_at BETWEEN now() - interval '15 minutes' AND now() - interval '20 seconds'
       ORDER BY created_at LIMIT ${mailsAtOnce}`,
    );
    // Last: its server may be away for hours.
    for (const { id } of owed) await mails.send(app, id, signal);
  }

  /** Adds a round of the app's upkeep to those that run; it never rejects. */
  function begin(app: App): void {
    const { appId } = app.config;
    const round = keep(app)
      .catch((error: unknown) => {
        log.warn("upkeep not done", { app: appId, error: error instanceof Error ? error.name : "unknown" });
      })
      .finally(() => underWay.delete(appId));
    underWay.set(appId, round);
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await delay(everyMs, undefined, { signal }).catch(() => undefined);
      for (const app of apps()) {
        while (underWay.size >= appsAtOnce && !signal.aborted) await Promise.race(underWay.values());
        if (signal.aborted) break;
        if (!underWay.has(app.config.appId)) begin(app);
      }
    }
    await Promise.all(underWay.values());
  }

  const running = run();
  return {
    close() {
      stopping.abort();
      return running;
    },
  };
}
