import { setTimeout as delay } from "node:timers/promises";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { createSemaphore } from "@holdfast/common/concurrency/semaphore.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { App } from "./app.ts";
import { mailCapacity } from "./sign-in/mail-limits.ts";
import type { MailSender } from "./sign-in/mail-sender.ts";

const intervalMs = 15_000;
const maxMailsPerSweep = 20;
/** Apps that are swept concurrently, so that a slow database delays few others. */
const maxConcurrentApps = 16;
const maxRowsPerStatement = 1_000;
/** Repetitions of a statement, enough for all rows that are written between two sweeps. */
const maxRepetitions = 100;

/**
 * Deletes rows that are no longer read. Each condition has its own index, and each statement deletes a bounded number
 * of rows.
 */
const deletions: readonly string[] = [
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
  return `WITH deleted AS (
    DELETE FROM ${s}.${table}
    WHERE ${key} = ANY (ARRAY (SELECT ${key} FROM ${s}.${table} WHERE ${isExpired} LIMIT ${maxRowsPerStatement} FOR UPDATE SKIP LOCKED))
    RETURNING 1)
  SELECT count(*)::int AS count FROM deleted`;
}

/**
 * Sends pending mails and deletes expired rows of each app, every 15 s. An unavailable database delays no other app.
 */
export function startAppSweep({
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
  const semaphore = createSemaphore(maxConcurrentApps);
  /** Sweeps that run or wait, by app id. */
  const inFlight = new Map<string, Promise<void>>();

  async function deleteExpired({ database }: App, statement: string): Promise<void> {
    for (let times = 0; times < maxRepetitions && !signal.aborted; times += 1) {
      const [deleted] = await database.tokens.rows<{ count: number }>(statement);
      if ((deleted?.count ?? 0) < maxRowsPerStatement) return;
    }
  }

  async function sweep(app: App): Promise<void> {
    const { database, config } = app;
    for (const statement of deletions) await deleteExpired(app, statement);
    if (config.mailLimited) mailSender.reportCapacity(app, await mailCapacity(app));
    const pendingMails = await database.tokens.rows<{ id: string }>(
      `SELECT id FROM ${s}.login_tokens WHERE is_owed AND sent_at IS NULL AND ended_at IS NULL AND expires_at > now()
         AND created_at BETWEEN now() - interval '15 minutes' AND now() - interval '20 seconds'
       ORDER BY created_at LIMIT ${maxMailsPerSweep}`,
    );
    // Mails come last, since their server may be unavailable for hours.
    for (const { id } of pendingMails) await mailSender.send(app, id, signal);
  }

  /** Starts a sweep of an app; failures are logged. */
  function startSweep(app: App): void {
    const { appId } = app.config;
    const running = semaphore
      .run(() => sweep(app), { signal })
      .catch((error: unknown) => {
        if (signal.aborted) return;
        log.warn("app not swept", { app: appId, error: error instanceof Error ? error.name : "unknown" });
      })
      .finally(() => inFlight.delete(appId));
    inFlight.set(appId, running);
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await delay(intervalMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      for (const app of apps()) if (!inFlight.has(app.config.appId)) startSweep(app);
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
