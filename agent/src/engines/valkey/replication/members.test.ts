import { cp } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { EngineUserSchema, ReplicationSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectValkey, valkeyVerifier } from "../../../../../test/support/engines/engine-clients.ts";
import {
  createEngineMachine,
  type EngineMachine,
  hasEngine,
} from "../../../../../test/support/engines/engine-machine.ts";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import type { ReplicationFacet } from "../../replication-facet.ts";
import { createValkeyDriver } from "../driver.ts";

/** Both members show one certificate, which is the second one's: nobody looks at the name in a primary's. */
function membersOf(second: string, primaryNodeId: string) {
  const members = [
    { nodeId: "first", number: 1, hostname: "first", address: "127.0.0.1" },
    { nodeId: second, number: 2, hostname: "second", address: "127.0.0.3" },
  ];
  return create(ReplicationSchema, { primaryNodeId, members, secret: "between members" });
}

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
    const statusOf = (one: EngineMachine) => facet(one).status(one.instance, one.signal);
    const confirm = (numbers: number[], withinMs: number) =>
      facet(first).confirm?.(first.instance, numbers, AbortSignal.timeout(withinMs));
    const observe = ({ driver, instance, signal }: EngineMachine) => driver.observe(instance, signal);

    async function begin(one: EngineMachine): Promise<void> {
      await one.writeConfig();
      await one.start();
      await one.driver.ready(one.instance, AbortSignal.timeout(20_000)).catch((error: unknown) => {
        throw new Error(one.output(), { cause: error });
      });
      await facet(one).admit(one.instance, one.signal);
    }

    /** A look remembers what the engine's file has. */
    const untilFollows = () =>
      waitUntil(
        "the second follows",
        async () => {
          await observe(second);
          return (await statusOf(second)).streaming;
        },
        { describe: async () => second.output() },
      );

    async function command(one: EngineMachine, ...words: string[]): Promise<unknown> {
      const client = await connectValkey({ ...one, ca: first.ca }, { user: defaultUser, password: "secret" });
      try {
        return await client.call(...words);
      } finally {
        await client.close();
      }
    }

    beforeAll(async () => {
      first = await machine("first", "127.0.0.1");
      second = await machine(first.serverName, "127.0.0.3", first.instance.spec.port);
      await cp(first.instance.paths.tls, second.instance.paths.tls, { recursive: true });
      for (const one of [first, second]) one.change({ replication: membersOf(first.serverName, "first") });
      await first.bootstrap();
      await begin(first);
      await facet(second).copy(second.instance, second.signal);
      await second.bootstrap();
      await begin(second);
      await untilFollows();
    });
    afterAll(async () => {
      await second?.remove();
      await first?.remove();
    });

    it("have one history, in which the second confirms that it follows", async () => {
      await command(first, "SET", "key", "1");
      const [one, other] = await Promise.all([statusOf(first), statusOf(second)]);
      expect(other).toMatchObject({ role: "replica", history: one.history });
      expect(await confirm([2], 30_000)).toBe(true);
    });

    it("do not have it confirmed by a member that is not there", async () => {
      await expect(confirm([2, 3], 1_500)).rejects.toThrow();
    });

    it("say whose data they have when they start alone, and at no position of it", async () => {
      const { history } = await statusOf(first);
      for (const one of [first, second]) await one.stop("SIGKILL");
      await begin(second);
      expect(await statusOf(second)).toMatchObject({ streaming: false, history, position: "0" });
      expect(await command(second, "GET", "key")).toBe("1");
    });

    it("begin another history with each start of the primary", async () => {
      const { history } = await statusOf(second);
      await begin(first);
      await untilFollows();
      const { received, ...told } = await statusOf(second);
      expect(told.history).not.toBe(history);
      expect(told.history).toBe((await statusOf(first)).history);
      await command(first, "SET", "key", "2");
      await waitUntil("more was received", async () => (await statusOf(second)).received !== received);
    });

    it("have a file with everything once the second is the primary, also of a kill at once", async () => {
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
      await begin(second);
      expect(await command(second, "GET", "key")).toBe("3");
    });
  });
});
