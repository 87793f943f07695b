import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { type RecoveryEnd, type RecoveryPlan, type RestoreFacet, TargetNotReached } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { summarizeNames } from "../../summarize-names.ts";
import { bootstrap } from "../bootstrap.ts";
import { engineDirectory, platform } from "../layout.ts";
import { isPlatformNameSql } from "../platform-accounts.ts";
import { identifier, literal, withSession } from "../session.ts";
import { currentRoleOf, setUser } from "../users.ts";
import { type ByteSession, byteText } from "./byte-session.ts";
import { readDefinitions } from "./definitions.ts";
import { type Definitions, definitionsStream, isRowsStream, parseDefinitions } from "./dump-format.ts";
import {
  alterEvent,
  createAccounts,
  createPrograms,
  createTables,
  grantPending,
  grantPrivileges,
  loadRows,
} from "./load.ts";
import { type PrivateServer, startPrivateServer } from "./private-server.ts";
import { replay } from "./replay.ts";

/** File beside the data with the number of loaded rows by table, for `examine`. */
export const countsFile = (instance: Pick<Instance, "paths">): string =>
  join(engineDirectory(instance), "restored.json");

/** The counts of a dump's tables. */
export interface RestoredTable {
  readonly database: string;
  readonly name: string;
  /** Absent after a replay of the log, which changes the numbers of a backup. */
  readonly rows?: number;
}

interface Loading {
  readonly data: string;
  /** A replay of the log stops it and starts another one. */
  server: PrivateServer;
  readonly definitions: Definitions;
  readonly counts: Map<number, number>;
}

const enableRedoLog = "ALTER INSTANCE ENABLE INNODB REDO_LOG";

/**
 * Loads a dump into new data. A private server runs from the first stream, which has the definitions, until `finish`;
 * its redo log is off while it loads rows. An interrupted restore begins again with an empty disk.
 */
export function createRestore(deps: EngineDeps): RestoreFacet {
  let loading: Loading | undefined;

  async function discard(): Promise<void> {
    const { server } = loading ?? {};
    loading = undefined;
    await server?.kill();
  }

  /** Runs the work and stops the server if it fails. */
  async function guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await discard();
      throw error;
    }
  }

  async function begin(instance: Instance, bytes: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    await discard();
    const definitions = parseDefinitions(await text(bytes));
    await bootstrap(deps, instance, signal);
    const server = await startPrivateServer(deps, instance, signal);
    loading = { data: instance.paths.data, server, definitions, counts: new Map() };
    await within(server, async (session) => {
      await session.run("ALTER INSTANCE DISABLE INNODB REDO_LOG");
      await createTables(session, definitions);
    });
  }

  function current({ paths }: Instance): Loading {
    if (loading?.data !== paths.data) throw new Error("the dump's definitions must be the first stream of a restore");
    return loading;
  }

  return {
    unpack: (instance, stream, bytes, signal) =>
      guarded(async () => {
        if (stream === definitionsStream) return begin(instance, bytes, signal);
        if (!isRowsStream(stream)) throw new Error(`a backup of MySQL has no ${stream}`);
        const { server, definitions, counts } = current(instance);
        for (const [table, rows] of await loadRows(server, definitions, bytes))
          counts.set(table, (counts.get(table) ?? 0) + rows);
      }),
    finish: (instance, plan, signal) =>
      guarded(async () => {
        const state = current(instance);
        const end = await complete(deps, state, instance, plan, signal);
        await state.server.stop();
        loading = undefined;
        await rm(plan.scratch, { recursive: true, force: true });
        await syncPath(engineDirectory(instance));
        return end;
      }),
  };
}

async function within<T>(server: PrivateServer, work: (session: ByteSession) => Promise<T>): Promise<T> {
  const session = await server.open();
  try {
    return await work(session);
  } finally {
    session.close();
  }
}

async function complete(
  deps: EngineDeps,
  state: Loading,
  instance: Instance,
  plan: RecoveryPlan,
  signal: AbortSignal,
): Promise<RecoveryEnd> {
  const { definitions, counts } = state;
  const { isSameService, report } = plan;
  const position = definitions.log?.position ?? definitions.gtids;
  report({ step: "recovering", position, reachedTime: undefined });
  const warnings = await within(state.server, (session) => createContents(session, definitions, isSameService));
  const isReplayed = plan.target.kind !== "backup_end";
  const reachedTime = isReplayed ? await replayed(deps, state, instance, plan, signal) : undefined;
  report({ step: "severing", position, reachedTime });
  const { server } = state;
  const contents = isReplayed
    ? await within(server, async (session) => (await readDefinitions(session)).definitions)
    : definitions;
  const lockedUsers = isSameService ? [] : await within(server, (session) => lockAccounts(session, instance, contents));
  await resetPasswords(server.instance, contents, signal);
  const events = await within(server, async (session) => {
    await settleReplayedEvents(session, contents, { areEnabled: isSameService });
    return isSameService ? [] : disabledEvents(session, { before: definitions, after: contents });
  });
  await within(server, async (session) => {
    const names = new Set(contents.databases.map(({ name }) => name));
    for (const { name, isReadOnly } of definitions.databases)
      if (isReadOnly && names.has(name))
        await session.run(byteText(`ALTER DATABASE ${identifier(name)} READ ONLY = 1`));
    // A copy has neither the history of the source nor the accounts of its members.
    for (const { name, host } of await memberAccounts(session))
      await session.run(byteText(`DROP USER ${literal(name)}@${literal(host)}`));
    await session.run("RESET BINARY LOGS AND GTIDS");
    await session.run(enableRedoLog);
  });
  const restored = contents.tables.map(({ database, name }, index): RestoredTable => {
    const rows = isReplayed ? {} : { rows: counts.get(index) ?? 0 };
    return { database, name, ...rows };
  });
  await writeFile(countsFile(instance), JSON.stringify(restored), { mode: 0o640, flush: true });
  return { position, reachedTime, lockedUsers, warnings: [...warnings, ...events] };
}

/** Creates everything of a dump but tables and rows. Returns sentences about parts that do not work in the source. */
async function createContents(
  session: ByteSession,
  definitions: Definitions,
  isSameService: boolean,
): Promise<readonly string[]> {
  await createAccounts(session, definitions.accounts);
  const pending = await grantPrivileges(session, definitions.accounts);
  const fromPrograms = await createPrograms(session, definitions, { areEventsDisabled: !isSameService });
  const fromGrants = await grantPending(session, pending);
  for (const { name, owner, mark } of definitions.marks)
    await session.run(
      byteText(
        `REPLACE INTO ${platform}.marks (name, owner, mark) VALUES (${[name, owner, mark].map(literal).join(", ")})`,
      ),
    );
  return [...fromPrograms, ...fromGrants];
}

/** Replays the log up to the target by other servers. Returns the time of the newest transaction. */
async function replayed(
  deps: EngineDeps,
  state: Loading,
  instance: Instance,
  plan: RecoveryPlan,
  signal: AbortSignal,
): Promise<Date | undefined> {
  const { log } = plan;
  if (log === undefined || state.definitions.log === undefined)
    throw new TargetNotReached("The backup has no log that follows it.");
  // A server without redo log stores the counters of AUTO_INCREMENT only now and then, those of the dictionary among
  // them: the next server would assign ids again.
  await within(state.server, (session) => session.run(enableRedoLog));
  await state.server.stop();
  const reachedTime = await replay(deps, instance, state.definitions, { ...plan, log }, signal);
  state.server = await startPrivateServer(deps, instance, signal);
  return reachedTime;
}

/** Accounts of the source's members, which its log created. */
async function memberAccounts(session: ByteSession): Promise<{ readonly name: string; readonly host: string }[]> {
  const rows = await session.rows(
    `SELECT user AS name, host AS host FROM mysql.user
     WHERE ${isPlatformNameSql("user")} AND NOT (user = ${literal(platform)} AND host = 'localhost')`,
  );
  return rows.map((row) => ({ name: String(row.get("name")), host: String(row.get("host")) }));
}

/** Locks the accounts that are not in the settings, whose passwords are the source's. Returns their names. */
async function lockAccounts(session: ByteSession, { spec }: Instance, { accounts }: Definitions): Promise<string[]> {
  const configured = new Set(spec.users.map(({ username }) => username));
  const unlisted = accounts.filter(({ name, host, isLocked }) => !isLocked && !(host === "%" && configured.has(name)));
  for (const { name, host } of unlisted) {
    const account = `${literal(name)}@${literal(host)}`;
    await session.run(byteText(`ALTER USER ${account} IDENTIFIED BY RANDOM PASSWORD ACCOUNT LOCK`));
    // A password that the source retained (RETAIN CURRENT PASSWORD) would be valid once a user unlocks the account.
    await session.run(byteText(`ALTER USER ${account} DISCARD OLD PASSWORD`));
  }
  return unlisted.map(({ name }) => name);
}

/** Gives the users in the settings their passwords and roles; an account with other privileges retains these. */
async function resetPasswords(instance: Instance, { accounts }: Definitions, signal: AbortSignal): Promise<void> {
  const existing = new Set(accounts.filter(({ host }) => host === "%").map(({ name }) => name));
  await withSession(instance, signal, async (session) => {
    for (const user of instance.spec.users) {
      const role = existing.has(user.username) ? await currentRoleOf(session, user.username) : undefined;
      await setUser(session, user, role === "custom" ? user.role : role);
    }
    await session.rows(`UPDATE ${platform}.instance SET users_created = TRUE`);
  });
}

/**
 * Enables or disables the events that ran in the source: the replay of their definitions leaves them disabled as a
 * replica's.
 */
async function settleReplayedEvents(
  session: ByteSession,
  { programs }: Definitions,
  { areEnabled }: { readonly areEnabled: boolean },
): Promise<void> {
  for (const program of programs)
    if (program.isReplicaDisabled === true) await alterEvent(session, program, areEnabled ? "ENABLE" : "DISABLE");
}

/** Sentence about events that were disabled in a copy, since they would repeat the source's work. */
async function disabledEvents(
  session: ByteSession,
  { before, after }: { readonly before: Definitions; readonly after: Definitions },
): Promise<string[]> {
  const listed = await session.rows(
    "SELECT event_schema AS place, event_name AS name, status AS state FROM information_schema.events",
  );
  const states = new Map(
    listed.map((row) => [`${String(row.get("place"))}.${String(row.get("name"))}`, String(row.get("state"))]),
  );
  const ran = [
    ...before.programs.filter(({ isEnabled }) => isEnabled),
    ...after.programs.filter(({ isReplicaDisabled }) => isReplicaDisabled),
  ];
  const names = [
    ...new Set(ran.filter(({ kind }) => kind === "event").map(({ database, name }) => `${database}.${name}`)),
  ];
  const existing = names.filter((name) => states.has(name));
  const running = existing.find((name) => states.get(name) === "ENABLED");
  if (running !== undefined) throw new Error(`The event ${running} was not disabled.`);
  if (existing.length === 0) return [];
  return [`Events are disabled in the copy: ${summarizeNames(existing)}. ALTER EVENT ... ENABLE starts one.`];
}
