import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defaultDatabase, defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { watchDirectory } from "../../os/directory-watch.ts";
import { readEngineFile } from "../../os/engine-file.ts";
import type { Instance } from "../engine-driver.ts";
import { roleOf } from "../members.ts";
import { createMissingObjects, hasRequiredObjects } from "./required-objects.ts";
import { identifier, codeOf, type Session, withSession } from "./session.ts";
import { dataDirectory, platform } from "./layout.ts";
import { preparePooler } from "./pooler/role.ts";
import { putUserSql } from "./put-user.ts";
import { becomePrimary } from "./replication/replication.ts";

/**
 * Resolves when the engine accepts a write and has the users and databases of its first settings. Those are created
 * only once, so that later changes by SQL survive restarts.
 */
export async function ready(instance: Instance, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await untilListening(instance, signal);
      if (roleOf(instance.spec) === "primary") await becomePrimary(instance, signal);
      await withSession(instance, signal, (session) => initialize(instance, session, signal), {
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
const pollIntervalMs = 200;

/** Waits until the postmaster's pid file says `ready`. Earlier connections would fill the log with refusals. */
async function untilListening(instance: Instance, signal: AbortSignal): Promise<void> {
  const directory = dataDirectory(instance);
  const watching = watchDirectory(directory, (name) => name === pidFile);
  try {
    for (;;) {
      signal.throwIfAborted();
      const text = await readEngineFile(join(directory, pidFile)).catch(() => "");
      if (text.split("\n")[7]?.trim() === "ready") return;
      await watching.changed(pollIntervalMs, signal);
    }
  } finally {
    watching.close();
  }
}

async function initialize(instance: Instance, session: Session, signal: AbortSignal): Promise<void> {
  const { spec } = instance;
  // A replica gets all of this from its primary; responding is enough.
  if (roleOf(spec) !== "primary") return;
  const found = await session.rows<{ users_made: boolean; complete: boolean }>(
    `UPDATE ${platform}.heartbeat SET at = clock_timestamp();
     SELECT users_made, ${hasRequiredObjects} AS complete FROM ${platform}.instance`,
  );
  if (found[0]?.complete === false) await createMissingObjects(instance, session, signal);
  if (spec.pooler !== undefined) await preparePooler(session);
  if (found[0]?.users_made === true) return;
  // The default user comes first, since the others become its members or have it as a member.
  const users = [...spec.users].sort((a, b) => Number(b.username === defaultUser) - Number(a.username === defaultUser));
  const others = users.filter(({ username }) => username !== defaultUser).map(({ username }) => username);
  const existing =
    others.length === 0
      ? []
      : await session.rows<{ rolname: string }>("SELECT rolname FROM pg_roles WHERE rolname = ANY ($1::text[])", [
          others,
        ]);
  const existingNames = new Set([defaultUser, ...existing.map(({ rolname }) => rolname)]);
  for (const database of spec.databases.filter((name) => name !== defaultDatabase)) {
    await createMissing(session, database);
  }
  const statements = users.map((user) => putUserSql(user, existingNames.has(user.username), spec.version));
  await session.rows(
    ["BEGIN", ...statements, `UPDATE ${platform}.instance SET users_made = true`, "COMMIT"].join("; "),
  );
}

async function createMissing(session: Session, database: string): Promise<void> {
  try {
    await session.rows(`CREATE DATABASE ${identifier(database)} OWNER ${defaultUser}`);
  } catch (error) {
    // duplicate_database: an interrupted first start created it.
    if (codeOf(error) !== "42P04") throw error;
  }
}

/** True if the socket does not exist or does not listen yet, or for cannot_connect_now. */
function isStarting(error: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED", "57P03"].includes(codeOf(error));
}
