import { setTimeout as delay } from "node:timers/promises";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { createSemaphore } from "@holdfast/common/concurrency/semaphore.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { App } from "./app.ts";
import { mailCapacity } from "./sign-in/mail-limits.ts";
import type { MailSender } from "./sign-in/mail-sender.ts";

const intervalMs = 15_000;
const mailsAtOnce = 20;
/** Apps that are processed concurrently, so that a slow database delays few others. */
const appsAtOnce = 16;
const rowsPerSweep = 1_000;
/** Enough for all rows that are written between two rounds. */
const sweepsPerRound = 100;

/**
 * Deletes rows that are no longer read. Each condition has its own index, and each statement deletes a bounded number
 * of rows.
 */
const sweeps: readonly string[] = [
  sweepOf("login_tokens", "id", "created_at < now() - interval '1 day'"),
  sweepOf("oauth_codes", "code_hash", "expires_at < now() - interval '1 hour'"),
  sweepOf("refresh_tokens", "family", "expires_at < now()"),
  sweepOf("refresh_tokens", "family", "ended_at < now() - interval '7 days'"),
  sweepOf("sessions", "id", "expires_at < now()"),
  sweepOf("sessions", "id", "revoked_at < now() - interval '30 days'"),
  sweepOf("events", "id", "type = 'token.refused' AND occurred_at < now() - interval '1 hour'"),
  sweepOf("events", "id", "occurred_at < now() - interval '400 days'"),
];

function sweepOf(table: string, key: string, isExpired: string): string {
  return `WITH gone AS (
    DELETE FROM ${s}.${table}
    WHERE ${key} = ANY (ARRAY (SELECT ${key} FROM ${s}.${table} WHERE ${isExpired} LIMIT ${rowsPerSweep} FOR UPDATE SKIP LOCKED))
    RETURNING 1)
  SELECT count(*)::int AS count FROM gone`;
}

/** Sends pending mails and deletes expired rows, for every app. An unavailable database delays no other app. */
export function startUpkeep({
  apps,
  mailSender,
  log,
}: {
  readonly apps: () => readonly App[];
  readonly mailSender: MailSender;
  readonly log: Log;
}): { close(): Promise<void> } {
  const stopping = new AbortController();
  const { signal } = stopping;
  const semaphore = createSemaphore(appsAtOnce);
  /** Rounds that run or wait, by app id. */
  const inFlight = new Map<string, Promise<void>>();

  async function sweep({ database }: App, statement: string): Promise<void> {
    for (let times = 0; times < sweepsPerRound && !signal.aborted; times += 1) {
      const [deleted] = await database.tokens.rows<{ count: number }>(statement);
      if ((deleted?.count ?? 0) < rowsPerSweep) return;
    }
  }

  async function runRound(app: App): Promise<void> {
    const { database, config } = app;
    for (const statement of sweeps) await sweep(app, statement);
    if (config.mailLimited) mailSender.reportCapacity(app, await mailCapacity(app));
    const owed = await database.tokens.rows<{ id: string }>(
      `SELECT id FROM ${s}.login_tokens WHERE is_owed AND sent_at IS NULL AND ended_at IS NULL AND expires_at > now()
         AND created_at BETWEEN now() - interval '15 minutes' AND now() - interval '20 seconds'
       ORDER BY created_at LIMIT ${mailsAtOnce}`,
    );
    // Mails come last, since their server may be unavailable for hours.
    for (const { id } of owed) await mailSender.send(app, id, signal);
  }

  /** Starts a round for an app; it never rejects. */
  function startRound(app: App): void {
    const { appId } = app.config;
    const round = semaphore
      .run(() => runRound(app), { signal })
      .catch((error: unknown) => {
        if (signal.aborted) return;
        log.warn("upkeep failed", { app: appId, error: error instanceof Error ? error.name : "unknown" });
      })
      .finally(() => inFlight.delete(appId));
    inFlight.set(appId, round);
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await delay(intervalMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      for (const app of apps()) if (!inFlight.has(app.config.appId)) startRound(app);
    }
    await Promise.all(inFlight.values());
  }

  const running = run();
  return {
    close() {
      stopping.abort();
      return running;
    },
  };
}
