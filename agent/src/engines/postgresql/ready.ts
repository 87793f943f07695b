import { watch } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defaultDatabase, defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { readEngineFile } from "../../os/engine-file.ts";
import type { Instance } from "../engine-driver.ts";
import { roleOf } from "../members.ts";
import { addMissing, hasAdditions } from "./additions.ts";
import { identifier, codeOf, type Session, withSession } from "./session.ts";
import { dataDirectory, platform } from "./layout.ts";
import { preparePooler } from "./pooler/role.ts";
import { putUserSql } from "./put-user.ts";
import { becomePrimary } from "./replication/promote.ts";

/**
 * Resolves when the engine takes a write and has the users and databases that it was asked to be made with. They are made
 * once: what users drop or change in SQL later stays so over restarts.
 */
export async function ready(instance: Instance, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await untilListening(instance, signal);
      if (roleOf(instance.spec) === "primary") await becomePrimary(instance, signal);
      await withSession(instance, signal, (session) => settle(instance, session, signal), {
        statementMs: 60_000,
        isLocal: true,
      });
      return;
    } catch (error) {
      if (!isStarting(error)) throw error;
      await sleep(5, undefined, { signal });
    }
  }
}

const pidFile = "postmaster.pid";
const lookEveryMs = 200;

/** The postmaster says in its pid file when it takes connections; trying before that would fill the log with refusals. */
async function untilListening(instance: Instance, signal: AbortSignal): Promise<void> {
  const directory = dataDirectory(instance);
  let written = Promise.withResolvers<void>();
  const watcher = watch(directory, (_, name) => name === pidFile && written.resolve());
  // Without a watch, as where there are too many of them, the looks now and then remain.
  watcher.on("error", () => undefined);
  try {
    for (;;) {
      signal.throwIfAborted();
      written = Promise.withResolvers();
      const text = await readEngineFile(join(directory, pidFile)).catch(() => "");
      if (text.split("\n")[7]?.trim() === "ready") return;
      await untilOr(written.promise, lookEveryMs, signal);
    }
  } finally {
    watcher.close();
  }
}

/** Resolves with the promise, or after the time. */
async function untilOr(promise: Promise<void>, afterMs: number, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const late = sleep(afterMs, undefined, { signal: AbortSignal.any([signal, over.signal]) });
  await Promise.race([promise, late]).finally(() => over.abort());
}

async function settle(instance: Instance, session: Session, signal: AbortSignal): Promise<void> {
  const { spec } = instance;
  // A replica has all of it from its primary; that it answers is what there is to ask.
  if (roleOf(spec) !== "primary") return;
  const found = await session.rows<{ users_made: boolean; whole: boolean }>(
    `UPDATE ${platform}.heartbeat SET at = clock_timestamp();
     SELECT users_made, ${hasAdditions} AS whole FROM ${platform}.instance`,
  );
  if (found[0]?.whole === false) await addMissing(instance, session, signal);
  if (spec.pooler !== undefined) await preparePooler(session);
  if (found[0]?.users_made === true) return;
  // The default user was made with the data directory; it comes first, so that the others can be put under it.
  const users = [...spec.users].sort((a, b) => Number(b.username === defaultUser) - Number(a.username === defaultUser));
  const others = users.filter(({ username }) => username !== defaultUser).map(({ username }) => username);
  const existing =
    others.length === 0
      ? []
      : await session.rows<{ rolname: string }>("SELECT rolname FROM pg_roles WHERE rolname = ANY ($1::text[])", [
          others,
        ]);
  const known = new Set([defaultUser, ...existing.map(({ rolname }) => rolname)]);
  for (const database of spec.databases.filter((name) => name !== defaultDatabase)) {
    await createMissing(session, database);
  }
  const statements = users.map((user) => putUserSql(user, known.has(user.username), spec.version));
  await session.rows(
    ["BEGIN", ...statements, `UPDATE ${platform}.instance SET users_made = true`, "COMMIT"].join("; "),
  );
}

async function createMissing(session: Session, database: string): Promise<void> {
  try {
    await session.rows(`CREATE DATABASE ${identifier(database)} OWNER ${defaultUser}`);
  } catch (error) {
    // duplicate_database: an interrupted first start made it.
    if (codeOf(error) !== "42P04") throw error;
  }
}

/** No socket yet, nobody listens on it yet, or cannot_connect_now. */
function isStarting(error: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED", "57P03"].includes(codeOf(error));
}
