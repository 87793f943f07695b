import { cp } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { EngineUserSchema, ReplicationSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { comparePositions, connectMysql, mysqlVerifier } from "@holdfast/testing/engines/mysql-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { ReplicationFacet } from "../../replication-facet.ts";
import { createMysqlDriver } from "../driver.ts";
import { replicaUser } from "../layout.ts";
import { withSession } from "../session.ts";
import { peerPassword } from "./peer-port.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");

describe.skipIf(skip !== undefined)("two members of mysql", () => {
  let first: EngineMachine;
  let second: EngineMachine;
  const facet = ({ driver }: EngineMachine) => driver.replication as ReplicationFacet;
  const statusOf = (member: EngineMachine) => facet(member).status(member.instance, member.signal);
  const observe = ({ driver, instance, signal }: EngineMachine) => driver.observe(instance, signal);
  const confirm = (member: EngineMachine, number: number, withinMs: number) =>
    facet(member).confirm?.(member.instance, [number], AbortSignal.timeout(withinMs));

  const machine = (nodeId: string, address: string, port?: number) =>
    createEngineMachine(async (deps) => createMysqlDriver(deps), "mysql", "9.7", {
      nodeId,
      address,
      users: [create(EngineUserSchema, { username: defaultUser, role: "admin", verifier: mysqlVerifier("secret") })],
      ...(port !== undefined && { port }),
    });

  /** Members that share the first one's certificate, and so its name. */
  const replicate = (primaryNodeId: string, syncNumbers: readonly number[] = []) => {
    const hostname = first.serverName;
    const members = [
      { nodeId: "first", number: 1, hostname, address: "127.0.0.1" },
      { nodeId: "second", number: 2, hostname, address: "127.0.0.3" },
    ];
    const secret = "between members".repeat(5);
    for (const member of [first, second])
      member.change({
        replication: create(ReplicationSchema, { primaryNodeId, members, secret, syncNumbers: [...syncNumbers] }),
      });
  };

  async function start(member: EngineMachine): Promise<void> {
    await member.writeConfig();
    await member.start();
    await ready(member);
    await facet(member).admit(member.instance, member.signal);
  }

  const ready = (member: EngineMachine) =>
    member.driver.ready(member.instance, AbortSignal.timeout(30_000)).catch((error: unknown) => {
      throw new Error(member.output(), { cause: error });
    });

  async function ask<Row extends object>(member: EngineMachine, sql: string): Promise<Row[]> {
    const client = await connectMysql({ ...member, ca: first.ca }, { user: defaultUser, password: "secret" });
    try {
      return (await client.query(sql))[0] as Row[];
    } finally {
      client.destroy();
    }
  }
  const rowsOf = async (member: EngineMachine) =>
    (await ask<{ a: number }>(member, "SELECT a FROM t ORDER BY a")).map(({ a }) => a);

  const createEvents = async (prefix: string, states: Readonly<Record<string, string>>) => {
    for (const [name, state] of Object.entries(states))
      await ask(first, `CREATE EVENT ${prefix}_${name} ON SCHEDULE EVERY 1 HOUR ${state} DO SELECT 1`);
  };
  /** An event whose author has other settings than the platform's sessions. */
  const createForeignEvent = async () => {
    const client = await connectMysql({ ...first, ca: first.ca }, { user: defaultUser, password: "secret" });
    await client.query("SET NAMES latin1");
    await client.query("SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES', time_zone = '+03:00'");
    await client.query(`CREATE EVENT "größe" ON SCHEDULE EVERY 1 HOUR DO INSERT INTO notes VALUES ('größe \\')`);
    client.destroy();
  };
  const foreignEvent = async (member: EngineMachine) =>
    await ask<object>(
      member,
      `SELECT definer, time_zone, sql_mode, character_set_client, collation_connection, HEX(event_definition) AS body
       FROM information_schema.events WHERE event_name = 'größe'`,
    );
  const eventsOf = async (member: EngineMachine) => {
    const rows = await ask<{ name: string; state: string }>(
      member,
      "SELECT event_name AS name, status AS state FROM information_schema.events",
    );
    const [global] = await ask<{ scheduler: string }>(member, "SELECT @@GLOBAL.event_scheduler AS scheduler");
    return { ...Object.fromEntries(rows.map(({ name, state }) => [name, state])), ...global };
  };
  /** MySQL does not distinguish events by their state on the primary once they were received. */
  const copied = { copied_on: "ENABLED", copied_off: "DISABLED" };
  const received = {
    received_on: "REPLICA_SIDE_DISABLED",
    received_off: "REPLICA_SIDE_DISABLED",
    received_replica: "REPLICA_SIDE_DISABLED",
    größe: "REPLICA_SIDE_DISABLED",
  };
  const settled = { ...received, received_on: "ENABLED", received_off: "DISABLED", größe: "ENABLED" };

  const untilFollows = (member: EngineMachine, primary: EngineMachine) =>
    waitUntil(
      "the member has all of its primary",
      async () => {
        await observe(member);
        const [own, leader] = [await statusOf(member), await statusOf(primary)];
        return own.streaming && comparePositions(leader.position, own.replayedPosition) === "same";
      },
      { describe: async () => `${JSON.stringify(await statusOf(member))} ${member.output()}` },
    );

  beforeAll(async () => {
    first = await machine("first", "127.0.0.1");
    second = await machine("second", "127.0.0.3", first.instance.spec.port);
    await cp(first.instance.paths.tls, second.instance.paths.tls, { recursive: true });
    // The primary has users and data before it gets its first replica.
    await first.bringUp();
    await ask(first, "CREATE TABLE t (a INT PRIMARY KEY)");
    await ask(first, "INSERT INTO t VALUES (1)");
    await createEvents("copied", { on: "ENABLE", off: "DISABLE" });
  }, 120_000);
  afterAll(async () => {
    await second?.remove();
    await first?.remove();
  });

  it("the second copies the data of a running primary, follows it and refuses writes", async () => {
    replicate("first");
    await first.writeConfig();
    await first.startCompanions();
    await first.driver.reload(first.instance, first.signal);
    await facet(first).admit(first.instance, first.signal);
    await second.writeConfig();
    await facet(second).copy(second.instance, second.signal);
    expect(await facet(second).dataRole(second.instance)).toBe("follower");
    await start(second);
    await createEvents("received", { on: "ENABLE", off: "DISABLE", replica: "DISABLE ON REPLICA" });
    await createForeignEvent();
    await ask(first, "INSERT INTO t VALUES (2)");
    await untilFollows(second, first);
    expect(await rowsOf(second)).toEqual([1, 2]);
    expect(await eventsOf(second)).toEqual({ scheduler: "OFF", ...copied, ...received });
    await expect(ask(second, "INSERT INTO t VALUES (3)")).rejects.toThrow("read-only");
    expect((await observe(second)).replication).toMatchObject({ role: "replica" });
    expect((await observe(first)).replication).toEqual({ role: "primary" });
    expect((await statusOf(first)).peers.map(({ number }) => number)).toEqual([2]);
    expect((await ask<{ own: string }>(second, "SELECT @@server_uuid AS own"))[0]?.own).not.toBe(
      (await ask<{ own: string }>(first, "SELECT @@server_uuid AS own"))[0]?.own,
    );
  }, 120_000);

  it("the second confirms that it follows, and an absent member does not", async () => {
    expect(await confirm(first, 2, 10_000)).toBe(true);
    expect(await confirm(first, 3, 1_500)).toBe(false);
  });

  it("a commit waits for the synchronous replica, and only for that", async () => {
    replicate("first", [2]);
    for (const member of [first, second]) await facet(member).admit(member.instance, member.signal);
    await ask(first, "INSERT INTO t VALUES (3)");
    await untilFollows(second, first);
    await second.stop("SIGKILL");
    let isCommitted = false;
    const commit = ask(first, "INSERT INTO t VALUES (4)").then(() => {
      isCommitted = true;
    });
    // The engine itself is healthy while the commit waits.
    expect((await observe(first)).checks.find(({ name }) => name === "liveness")?.status).toBe("healthy");
    expect(isCommitted).toBe(false);
    await start(second);
    await commit;
    await untilFollows(second, first);
    expect(await rowsOf(second)).toEqual([1, 2, 3, 4]);
  }, 60_000);

  it("a commit whose acknowledgment was lost is acknowledged with a later one", async () => {
    await ask(first, "CREATE TABLE acknowledged (a INT PRIMARY KEY)");
    // The second receives the row over a connection that does not acknowledge.
    await withSession(second.instance, second.signal, async (session) => {
      await session.rows("STOP REPLICA");
      await session.rows("SET GLOBAL rpl_semi_sync_replica_enabled = OFF");
      await session.rows(`START REPLICA USER = '${replicaUser}' PASSWORD = '${peerPassword(second.instance)}'`);
    });
    let isCommitted = false;
    const commit = ask(first, "INSERT INTO acknowledged VALUES (1)").then(() => {
      isCommitted = true;
    });
    const received = async () => (await ask(second, "SELECT a FROM acknowledged")).length === 1;
    await waitUntil("the second has the row", received);
    await facet(second).admit(second.instance, second.signal);
    const isWaiting = async () => {
      const [row] = await ask<{ Value: string }>(first, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_clients'");
      return Number(row?.Value) === 1;
    };
    await waitUntil("the second acknowledges further rows", isWaiting);
    expect(isCommitted).toBe(false);
    await waitUntil("the row is committed", async () => {
      const { checks } = await observe(first);
      expect(checks.find(({ name }) => name === "liveness")?.status).toBe("healthy");
      return isCommitted;
    });
    await commit;
  }, 60_000);

  it("the second has every acknowledged row when it is promoted after a kill of the first", async () => {
    let acknowledged = 4;
    const client = await connectMysql(first, { user: defaultUser, password: "secret" });
    const writing = (async () => {
      for (let a = 5; ; a += 1) {
        await client.query(`INSERT INTO t VALUES (${a})`);
        acknowledged = a;
      }
    })().catch(() => undefined);
    await waitUntil("rows are written", async () => acknowledged > 50);
    const foreign = await foreignEvent(first);
    await first.stop("SIGKILL");
    await writing;
    replicate("second");
    expect(await facet(second).dataRole(second.instance)).toBe("follower");
    await ready(second);
    await facet(second).admit(second.instance, second.signal);
    expect(await facet(second).dataRole(second.instance)).toBe("primary");
    const rows = await rowsOf(second);
    expect(rows.slice(0, acknowledged)).toEqual(Array.from({ length: acknowledged }, (_, at) => at + 1));
    await ask(second, "INSERT INTO t VALUES (100000)");
    expect(await eventsOf(second)).toEqual({ scheduler: "ON", ...copied, ...settled });
    expect(await foreignEvent(second)).toEqual(foreign);
    expect(foreign).toHaveLength(1);
    expect(await facet(second).shutdownPosition(second.instance, second.signal)).toBeUndefined();
  }, 60_000);

  it("the first follows as it is only if the new primary has all of its transactions", async () => {
    // An errant transaction: the former primary starts without the others and accepts a write.
    replicate("first");
    await first.writeConfig();
    await first.start();
    await ready(first);
    await ask(first, "INSERT INTO t VALUES (200000)");
    await first.stop();
    replicate("second");
    await first.writeConfig();
    await expect(facet(first).rewind?.(first.instance, first.signal)).rejects.toThrow("lacks transactions");
    await facet(first).copy(first.instance, first.signal);
    await start(first);
    await untilFollows(first, second);
    expect(await rowsOf(first)).toEqual(await rowsOf(second));
    expect(await rowsOf(first)).not.toContain(200_000);
  }, 120_000);

  it("a primary that stops in order is followed without a copy", async () => {
    await ask(second, "CREATE EVENT late_on ON SCHEDULE EVERY 1 HOUR DO SELECT 1");
    await ask(second, "ALTER EVENT received_on DISABLE");
    await ask(second, "ALTER EVENT received_off ENABLE");
    await facet(second).prepareStop(second.instance, second.signal);
    const end = await facet(second).shutdownPosition(second.instance, second.signal);
    expect(comparePositions(end?.position ?? "", (await statusOf(first)).replayedPosition)).toBe("before");
    await second.stop();
    replicate("first");
    await ready(first);
    await facet(first).admit(first.instance, first.signal);
    const changed = { received_on: "DISABLED", received_off: "ENABLED", late_on: "ENABLED" };
    expect(await eventsOf(first)).toEqual({ scheduler: "ON", ...copied, ...settled, ...changed });
    await ask(first, "INSERT INTO t VALUES (300000)");
    await second.writeConfig();
    await facet(second).rewind?.(second.instance, second.signal);
    expect(await facet(second).dataRole(second.instance)).toBe("follower");
    await start(second);
    await untilFollows(second, first);
    expect(await rowsOf(second)).toContain(300_000);
  }, 60_000);

  it("a promotion that was interrupted is completed", async () => {
    await withSession(first.instance, first.signal, async (session) => {
      await session.rows("SET GLOBAL read_only = ON");
      await session.rows("SET GLOBAL event_scheduler = OFF");
    });
    await expect(ask(first, "INSERT INTO t VALUES (350000)")).rejects.toThrow("read-only");
    await ready(first);
    await ask(first, "INSERT INTO t VALUES (350000)");
    expect(await eventsOf(first)).toMatchObject({ scheduler: "ON" });
    await untilFollows(second, first);
    expect(await rowsOf(second)).toContain(350_000);
  }, 60_000);

  it("a replica with an errant transaction copies its data again", async () => {
    await withSession(second.instance, second.signal, async (session) => {
      await session.rows("STOP REPLICA");
      await session.rows("SET GLOBAL super_read_only = OFF");
      await session.rows("INSERT INTO defaultdb.t VALUES (400000)");
      await session.rows("SET GLOBAL super_read_only = ON");
    });
    await expect(facet(second).admit(second.instance, second.signal)).rejects.toThrow("copies its data again");
    expect(await facet(second).dataRole(second.instance)).toBe("primary");
  });
});
