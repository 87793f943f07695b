import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectValkey, valkeyVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createValkeyDriver } from "./driver.ts";

/** Commands that no user may run. */
const forbidden: readonly string[] = [
  "CONFIG GET maxmemory",
  "CONFIG SET dir /tmp",
  "CONFIG REWRITE",
  "ACL LIST",
  "ACL SETUSER evil on nopass +@all ~*",
  "ACL SAVE",
  "MODULE LIST",
  "MODULE LOAD /tmp/evil.so",
  "DEBUG SLEEP 0",
  "REPLICAOF 127.0.0.1 1",
  "SLAVEOF 127.0.0.1 1",
  "FAILOVER",
  "PSYNC ? -1",
  "SYNC",
  "REPLCONF ack 1",
  "SHUTDOWN NOSAVE",
  "SAVE",
  "BGSAVE",
  "BGREWRITEAOF",
  "MONITOR",
  "CLIENT PAUSE 1000",
  "CLIENT NO-EVICT on",
  "MIGRATE 127.0.0.1 1 key 0 1",
  "SWAPDB 0 1",
  "CLUSTER RESET",
  "LATENCY GRAPH command",
];
const forAdmins: readonly string[] = ["FLUSHDB", "KEYS *", "CLIENT LIST", "SLOWLOG GET", "LATENCY LATEST"];
const forWriters: readonly string[] = ["SET key value", "EVAL return(1) 0", "PUBLISH channel x"];
const forAll: readonly string[] = ["GET key", "SCAN 0", "INFO", "PING", "CLIENT SETNAME me", "SUBSCRIBE channel"];

const roles = { app_user: "admin", writer: "readwrite", reader: "readonly" } as const;

describe.each(["8.1", "9"])("users of valkey %s", (version) => {
  describe.skipIf(!hasEngine("valkey", version))("are confined", () => {
    let machine: EngineMachine;

    beforeAll(async () => {
      const verifier = valkeyVerifier("secret");
      const users = Object.entries(roles).map(([username, role]) =>
        create(EngineUserSchema, { username, role, verifier }),
      );
      machine = await createEngineMachine(async (deps) => createValkeyDriver(deps), "valkey", version, {
        users,
        memoryBytes: 1n << 20n,
      });
      await machine.bringUp();
    });
    afterAll(() => machine?.remove());

    it.each(Object.entries(roles))("%s may do what the role %s allows, and no more", async (user, role) => {
      const allowed = [...forAll, ...(role === "readonly" ? [] : forWriters), ...(role === "admin" ? forAdmins : [])];
      for (const line of [...forbidden, ...forAdmins, ...forWriters, ...forAll]) {
        const client = await connectValkey(machine, { user, password: "secret" });
        const answer = await client.call(...line.split(" ")).then(
          () => "worked",
          (error: Error) => error.message,
        );
        await client.close();
        if (allowed.includes(line)) expect(answer, line).toBe("worked");
        else expect(answer, line).toMatch(/^(NOPERM|ERR (MODULE|DEBUG) command not allowed)/);
      }
    });

    it("cannot see the platform's writes or sign in as the platform", async () => {
      const client = await connectValkey(machine, { user: "app_user", password: "secret" });
      await machine.driver.observe(machine.instance, machine.signal);
      for (const database of ["0", "15", "16"]) {
        await client.call("SELECT", database);
        expect(await client.call("KEYS", "*holdfast*")).toEqual([]);
      }
      await client.close();
      for (const user of ["holdfast", "default"]) {
        await expect(connectValkey(machine, { user, password: "secret" })).rejects.toThrow("WRONGPASS");
      }
    });

    it("can fill the memory, and the engine reports full, not unhealthy", async () => {
      const client = await connectValkey(machine, { user: "writer", password: "secret" });
      let values = 0;
      const fill = async (size: number) => {
        for (let refused = ""; refused === ""; values += 1) {
          await client.call("SET", `value:${values}`, "x".repeat(size)).catch((error: Error) => {
            refused = error.message;
            expect(refused).toMatch(/^OOM/);
          });
        }
      };
      // Large values first, then small ones into the space that the refused large one did not fill.
      for (const size of [1_000_000, 10_000, 100]) await fill(size);
      // Ended sessions free a little memory once more.
      const liveness = await waitUntil("its probe finds no room", async () => {
        await fill(1);
        const [check] = (await machine.driver.observe(machine.instance, machine.signal)).checks;
        return check?.status !== "healthy" && check;
      });
      expect(liveness).toEqual({ name: "liveness", status: "degraded", reason: "The memory is full." });
      await client.close();
    });
  });
});
