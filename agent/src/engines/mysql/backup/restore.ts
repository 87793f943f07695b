import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { RecoveryEnd, RecoveryPlan, RestoreFacet } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { summarizeNames } from "../../summarize-names.ts";
import { bootstrap } from "../bootstrap.ts";
import { engineDirectory, platform } from "../layout.ts";
import { identifier, literal, withSession } from "../session.ts";
import { currentRoleOf, setUser } from "../users.ts";
import { type ByteSession, byteText } from "./byte-session.ts";
import { type Definitions, definitionsStream, isRowsStream, parseDefinitions } from "./dump-format.ts";
import { createAccounts, createPrograms, createTables, grantPending, grantPrivileges, loadRows } from "./load.ts";
import { type PrivateServer, startPrivateServer } from "./private-server.ts";

/** File beside the data with the number of loaded rows by table, for `examine`. */
export const countsFile = (instance: Pick<Instance, "paths">): string =>
  join(engineDirectory(instance), "restored.json");

/** The counts of a dump's tables. */
export interface RestoredTable {
  readonly database: string;
  readonly name: string;
  readonly rows: number;
}

interface Loading {
  readonly data: string;
  readonly server: PrivateServer;
  readonly definitions: Definitions;
  readonly counts: Map<number, number>;
}

/**
 * Loads a dump into new data. A private server runs from the first stream, which has the definitions, until `finish`;
 * its redo log is off, so an interrupted restore begins again with an empty disk.
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
        if (plan.target.kind !== "backup_end") throw new Error("a dump can only be restored to the end of the backup");
        const state = current(instance);
        const end = await complete(state, instance, plan, signal);
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
  { server, definitions, counts }: Loading,
  instance: Instance,
  { isSameService, report }: RecoveryPlan,
  signal: AbortSignal,
): Promise<RecoveryEnd> {
  report({ step: "recovering", position: definitions.gtids, reachedTime: undefined });
  const warnings = await within(server, async (session) => {
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
  });
  report({ step: "severing", position: definitions.gtids, reachedTime: undefined });
  const lockedUsers = isSameService
    ? []
    : await within(server, (session) => lockAccounts(session, instance, definitions));
  await resetPasswords(server.instance, definitions, signal);
  const events = isSameService ? [] : await within(server, (session) => disabledEvents(session, definitions));
  await within(server, async (session) => {
    for (const { name, isReadOnly } of definitions.databases)
      if (isReadOnly) await session.run(byteText(`ALTER DATABASE ${identifier(name)} READ ONLY = 1`));
    await session.run("ALTER INSTANCE ENABLE INNODB REDO_LOG");
  });
  const restored = definitions.tables.map(
    ({ database, name }, index): RestoredTable => ({ database, name, rows: counts.get(index) ?? 0 }),
  );
  await writeFile(countsFile(instance), JSON.stringify(restored), { mode: 0o640, flush: true });
  return { position: definitions.gtids, reachedTime: undefined, lockedUsers, warnings: [...warnings, ...events] };
}

/** Locks the accounts that are not in the settings, whose passwords are the source's. Returns their names. */
async function lockAccounts(session: ByteSession, { spec }: Instance, { accounts }: Definitions): Promise<string[]> {
  const configured = new Set(spec.users.map(({ username }) => username));
  const unlisted = accounts.filter(({ name, host, isLocked }) => !isLocked && !(host === "%" && configured.has(name)));
  for (const { name, host } of unlisted) {
    const account = `${literal(name)}@${literal(host)}`;
    await session.run(byteText(`ALTER USER ${account} IDENTIFIED BY RANDOM PASSWORD ACCOUNT LOCK`));
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

/** Sentence about events that were disabled in a copy, since they would repeat the source's work. */
async function disabledEvents(session: ByteSession, { programs }: Definitions): Promise<string[]> {
  const listed = await session.rows(
    "SELECT event_schema AS place, event_name AS name, status AS state FROM information_schema.events",
  );
  const states = new Map(
    listed.map((row) => [`${String(row.get("place"))}.${String(row.get("name"))}`, String(row.get("state"))]),
  );
  const names = programs
    .filter(({ kind, isEnabled }) => kind === "event" && isEnabled)
    .map(({ database, name }) => `${database}.${name}`)
    .filter((name) => states.has(name));
  const running = names.find((name) => states.get(name) === "ENABLED");
  if (running !== undefined) throw new Error(`The event ${running} was not disabled.`);
  if (names.length === 0) return [];
  return [`Events are disabled in the copy: ${summarizeNames(names)}. ALTER EVENT ... ENABLE starts one.`];
}
