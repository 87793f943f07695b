import { setTimeout as delay } from "node:timers/promises";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { App } from "./app.ts";
import type { MailWatch } from "./sign-in/mail-watch.ts";

const everyMs = 15_000;
const mailsAtOnce = 20;

/** Rows that nobody asks for any more; each statement takes a bounded number, and the next round the rest. */
const sweeps: readonly string[] = [
  swept("login_tokens", "id", "created_at < now() - interval '1 day'"),
  swept("oauth_codes", "code_hash", "expires_at < now() - interval '1 hour'"),
  swept("refresh_tokens", "family", "expires_at < now() OR ended_at < now() - interval '7 days'"),
  swept("sessions", "id", "expires_at < now() OR revoked_at < now() - interval '30 days'"),
  swept("events", "id", "type = 'token.refused' AND occurred_at < now() - interval '1 hour'"),
  swept("events", "id", "occurred_at < now() - interval '400 days'"),
];

function swept(table: string, key: string, isOver: string): string {
  return `DELETE FROM ${s}.${table} WHERE ${key} IN (SELECT ${key} FROM ${s}.${table} WHERE ${isOver} LIMIT 1000)`;
}

/** Sends mails that are still owed, and removes what is over, for every app in turn; one whose database is away is passed by. */
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

  async function keep(app: App): Promise<void> {
    for (const statement of sweeps) await app.database.rows(statement);
    const owed = await app.database.rows<{ id: string }>(
      `SELECT id FROM ${s}.login_tokens WHERE is_owed AND sent_at IS NULL AND ended_at IS NULL AND expires_at > now()
         AND created_at < now() - interval '20 seconds' ORDER BY created_at LIMIT ${mailsAtOnce}`,
    );
    // Last: its server may be away for hours.
    for (const { id } of owed) await mails.send(app, id, signal);
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await delay(everyMs, undefined, { signal }).catch(() => undefined);
      for (const app of apps()) {
        if (signal.aborted) return;
        await keep(app).catch((error: unknown) => {
          log.warn("upkeep not done", {
            app: app.config.appId,
            error: error instanceof Error ? error.name : "unknown",
          });
        });
      }
    }
  }

  const running = run();
  return {
    close() {
      stopping.abort();
      return running;
    },
  };
}
