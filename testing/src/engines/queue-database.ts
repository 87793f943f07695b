import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import type { EngineDeps } from "@holdfast/agent/engines/engine-deps.ts";
import type { EngineDriver, Instance } from "@holdfast/agent/engines/engine-driver.ts";
import { createPostgresqlDriver } from "@holdfast/agent/engines/postgresql/driver.ts";
import { migrate } from "@holdfast/agent/engines/postgresql/queue/migrate.ts";
import { createQueue, type QueueSettings } from "@holdfast/agent/engines/postgresql/queue/stored-queues.ts";
import { agentRole } from "@holdfast/agent/engines/postgresql/queue/schema/names.ts";
import { type Session, withSession } from "@holdfast/agent/engines/postgresql/session.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import pg from "pg";
import { createFakeClock, type FakeClock } from "../controller/fake-clock.ts";
import { connectPostgresql, scramVerifier } from "./engine-clients.ts";
import { createEngineMachine, type EngineMachine } from "./engine-machine.ts";

const roles = { app_user: "admin", writer: "readwrite", reader: "readonly" } as const;

/** A PostgreSQL of the node image as in services, with users, and the schema of queues in its default database. */
export interface QueueDatabase {
  readonly machine: EngineMachine;
  /** Session of the agent: the superuser over the Unix socket. */
  asPlatform<T>(work: (session: Session) => Promise<T>, database?: string): Promise<T>;
  /** Runs `work` in a session with only the privileges that work on queues needs. */
  asAgent<T>(work: (session: Session) => Promise<T>, database?: string): Promise<T>;
  /** A session of a user; the caller ends it. */
  connect(user?: keyof typeof roles, database?: string): Promise<pg.Client>;
  /** Configuration of a pool of app_user's sessions, for another process. */
  readonly poolConfig: pg.PoolConfig;
  /** Sessions of app_user; they end with the database. */
  pool(max: number, database?: string): pg.Pool;
  /** The wall clock of the engine, when one was requested. */
  readonly clock: FakeClock | undefined;
  /** Creates another database of an encoding, with the schema of queues. */
  createDatabase(name: string, encoding: string): Promise<void>;
  /** Creates a queue in the default database, or in another one that has the schema. */
  createQueue(name: string, settings?: Partial<QueueSettings>, database?: string): Promise<void>;
  remove(): Promise<void>;
}

/**
 * Resolves when the engine accepts connections. `withSchema: false` leaves the default database as in services without
 * queues. With the library of a fake clock the engine's wall clock is separate from the host's.
 */
export async function createQueueDatabase(
  version = "17",
  {
    withSchema = true,
    clockLibrary,
  }: { readonly withSchema?: boolean; readonly clockLibrary?: string | undefined } = {},
): Promise<QueueDatabase> {
  const users = Object.entries(roles).map(([username, role]) =>
    create(EngineUserSchema, { username, role, verifier: scramVerifier("secret") }),
  );
  let clock: FakeClock | undefined;
  const withClock = (driver: EngineDriver): EngineDriver => ({
    ...driver,
    command(instance) {
      const command = driver.command(instance);
      const environment = Object.entries(clock?.environment ?? {}).map(([name, value]) => `${name}=${value}`);
      return { ...command, argv: ["/usr/bin/env", ...environment, ...command.argv] };
    },
  });
  const load = async (deps: EngineDeps) => withClock(createPostgresqlDriver(deps));
  const machine = await createEngineMachine(load, "postgresql", version, { users });
  if (clockLibrary !== undefined) clock = clockIn(machine.instance, clockLibrary);
  await machine.bringUp();
  const { address: host, port } = machine.instance.spec;
  const poolConfig = {
    host,
    port,
    user: "app_user",
    password: "secret",
    database: "defaultdb",
    ssl: { ca: machine.ca, servername: machine.serverName },
  };
  const pools: pg.Pool[] = [];
  const database: QueueDatabase = {
    machine,
    asPlatform: (work, name = "defaultdb") =>
      withSession(machine.instance, machine.signal, work, { database: name, statementMs: 120_000 }),
    asAgent: (work, name) =>
      database.asPlatform(async (session) => {
        await session.rows(`SET ROLE ${agentRole}`);
        return work(session);
      }, name),
    connect: (user = "app_user", name = "defaultdb") =>
      connectPostgresql(machine, { user, password: "secret", database: name }),
    poolConfig,
    clock,
    pool(max, name = "defaultdb") {
      const created = new pg.Pool({ ...poolConfig, database: name, max });
      created.on("error", () => undefined);
      pools.push(created);
      return created;
    },
    async createDatabase(name, encoding) {
      await database.asPlatform((session) =>
        session.rows(`CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE 'C' TEMPLATE template0 OWNER app_user`),
      );
      await database.asPlatform((session) => migrate(session, { serviceId: "service" }), name);
    },
    async createQueue(name, settings = {}, databaseName?: string) {
      const { visibilityTimeoutSeconds = 30, maxAttempts = 5, dlqEnabled = true } = settings;
      const queue = { id: `id-${name}`, name, visibilityTimeoutSeconds, maxAttempts, dlqEnabled };
      await database.asAgent((session) => createQueue(session, queue), databaseName);
    },
    async remove() {
      for (const created of pools) await created.end().catch(() => undefined);
      await machine.remove();
    },
  };
  if (withSchema) await database.asPlatform((session) => migrate(session, { serviceId: "service" }));
  return database;
}

/** Directory in which the engine, which sees nothing else of this host, finds both files. */
function clockIn({ paths }: Instance, library: string): FakeClock {
  const copy = join(paths.run, "clock.so");
  copyFileSync(library, copy);
  return createFakeClock(copy, join(paths.run, "clock"));
}
