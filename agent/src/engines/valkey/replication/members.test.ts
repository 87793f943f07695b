import { cp } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { EngineUserSchema, ReplicationSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectValkey, valkeyVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { ReplicationFacet } from "../../replication-facet.ts";
import { createValkeyDriver } from "../driver.ts";

/** Members of which both use the second one's certificate: the name in a primary's certificate is not checked. */
function membersOf(second: string, primaryNodeId: string) {
  const members = [
    { nodeId: "first", number: 1, hostname: "first", address: "127.0.0.1" },
    { nodeId: second, number: 2, hostname: "second", address: "127.0.0.3" },
  ];
  return create(ReplicationSchema, { primaryNodeId, members, secret: "between members" });
}

/** Read-only script that occupies a replica for two seconds, in which it neither reads nor acknowledges the log. */
const stalls = `redis.log(redis.LOG_WARNING, 'it stalls') local from = redis.call('TIME')[1]
  repeat local now = redis.call('TIME')[1] until now - from >= 2 return 'done'`;

describe.each(["8.1", "9"])("two members of valkey %s", (version) => {
  describe.skipIf(!hasEngine("valkey", version))("as engines of their own", () => {
    let first: EngineMachine;
    let second: EngineMachine;
    const machine = (nodeId: string, address: string, port?: number) =>
      createEngineMachine(async (deps) => createValkeyDriver(deps), "valkey", version, {
        nodeId,
        address,
        users: [create(EngineUserSchema, { username: defaultUser, role: "admin", verifier: valkeyVerifier("secret") })],
        ...(port !== undefined && { port }),
      });
    const facet = ({ driver }: EngineMachine) => driver.replication as ReplicationFacet;
    const statusOf = (member: EngineMachine) => facet(member).status(member.instance, member.signal);
    const confirm = (numbers: number[], withinMs: number) =>
      facet(first).confirm?.(first.instance, numbers, AbortSignal.timeout(withinMs));
    const observe = ({ driver, instance, signal }: EngineMachine) => driver.observe(instance, signal);

    async function start(member: EngineMachine): Promise<void> {
      await member.writeConfig();
      await member.start();
      await member.driver.ready(member.instance, AbortSignal.timeout(20_000)).catch((error: unknown) => {
        throw new Error(member.output(), { cause: error });
      });
      await facet(member).admit(member.instance, member.signal);
    }

    /** Reading the status records a completed copy. */
    const untilFollows = () =>
      waitUntil(
        "the second follows",
        async () => {
          await observe(second);
          return (await statusOf(second)).streaming;
        },
        { describe: async () => second.output() },
      );

    async function command(member: EngineMachine, ...args: string[]): Promise<unknown> {
      const client = await connectValkey({ ...member, ca: first.ca }, { user: defaultUser, password: "secret" });
      try {
        return await client.call(...args);
      } finally {
        await client.close();
      }
    }

    beforeAll(async () => {
      first = await machine("first", "127.0.0.1");
      second = await machine(first.serverName, "127.0.0.3", first.instance.spec.port);
      await cp(first.instance.paths.tls, second.instance.paths.tls, { recursive: true });
      for (const member of [first, second]) member.change({ replication: membersOf(first.serverName, "first") });
      await first.bootstrap();
      await start(first);
      await facet(second).copy(second.instance, second.signal);
      await second.bootstrap();
      await start(second);
      await untilFollows();
    });
    afterAll(async () => {
      await second?.remove();
      await first?.remove();
    });

    it("share a replication id, and the second confirms that it follows", async () => {
      await command(first, "SET", "key", "1");
      const [member, replica] = await Promise.all([statusOf(first), statusOf(second)]);
      expect(replica).toMatchObject({ role: "replica", history: member.history });
      expect(await confirm([2], 30_000)).toBe(true);
    });

    it("are not confirmed by an absent member", async () => {
      await expect(confirm([2, 3], 1_500)).rejects.toThrow();
    });

    it("report their data's replication id and no position when they start alone", async () => {
      const { history } = await statusOf(first);
      for (const member of [first, second]) await member.stop("SIGKILL");
      await start(second);
      expect(await statusOf(second)).toMatchObject({ streaming: false, history, position: "0" });
      expect(await command(second, "GET", "key")).toBe("1");
    });

    it("get another replication id with each start of the primary", async () => {
      const { history } = await statusOf(second);
      await start(first);
      await untilFollows();
      const { received, ...status } = await statusOf(second);
      expect(status.history).not.toBe(history);
      expect(status.history).toBe((await statusOf(first)).history);
      await command(first, "SET", "key", "2");
      await waitUntil("more was received", async () => (await statusOf(second)).received !== received);
    });

    it("stop for a switchover only once the second has the last write", async () => {
      const stalled = command(second, "EVAL", stalls, "0");
      await waitUntil("the second stalls", async () => second.output().includes("it stalls"));
      // More than the buffers of the connections between the two hold.
      for (const key of ["a", "b", "c", "d"]) await command(first, "SET", key, key.repeat(8 << 20));
      await facet(first).prepareStop(first.instance, first.signal);
      await first.stop();
      expect(await stalled).toBe("done");
      const end = await facet(first).shutdownPosition(first.instance, first.signal);
      const { history, replayedPosition } = await statusOf(second);
      expect(end?.history).toBe(history);
      expect(Number(replayedPosition)).toBeGreaterThan(Number(end?.position));
    });

    it("stop without a position if no replica streams", async () => {
      await start(first);
      await untilFollows();
      await second.stop("SIGKILL");
      await facet(first).prepareStop(first.instance, first.signal);
      await first.stop();
      expect(await facet(first).shutdownPosition(first.instance, first.signal)).toBeUndefined();
      for (const member of [first, second]) await start(member);
      await untilFollows();
    });

    it("have a complete file once the second is promoted, even after an immediate kill", async () => {
      await waitUntil("the value arrives", async () => (await command(second, "GET", "key")) === "2");
      await first.stop("SIGKILL");
      second.change({ replication: membersOf(first.serverName, first.serverName) });
      await waitUntil("the second is the primary", () =>
        second.driver.ready(second.instance, second.signal).then(
          () => true,
          () => false,
        ),
      );
      await command(second, "SET", "key", "3");
      await second.stop("SIGKILL");
      await start(second);
      expect(await command(second, "GET", "key")).toBe("3");
    });
  });
});
