import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectValkey, valkeyVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createValkeyDriver } from "./driver.ts";
import { parseInfo, withSession } from "./session.ts";
import { dataDirectory } from "./layout.ts";

const mib = 1 << 20;

describe.each(["8.1", "9"])("a valkey %s whose disk fills", (version) => {
  describe.skipIf(!hasEngine("valkey", version))("in a separate engine", () => {
    let machine: EngineMachine;
    beforeAll(async () => {
      machine = await createEngineMachine(async (deps) => createValkeyDriver(deps), "valkey", version, {
        users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier: valkeyVerifier("secret") })],
        parameters: { "maxmemory-policy": "allkeys-lru", "auto-aof-rewrite-percentage": "0" },
      });
      await machine.bringUp();
    });
    afterAll(() => machine?.remove());

    const command = async (...args: string[]) => {
      const { call, close } = await connectValkey(machine, { user: "app_user", password: "secret" });
      try {
        return await call(...args);
      } finally {
        await close();
      }
    };
    const info = () =>
      withSession(machine.instance, machine.signal, async (session) => parseInfo(String(await session.call("INFO"))));
    const blocked = () => ({ ...machine.instance, writesBlocked: true });
    const fileOf = (name: string) => join(dataDirectory(machine.instance), name);

    it("refuses commands that need memory, accepts deletions, and evicts nothing", async () => {
      for (const key of ["one", "two", "three"]) await command("SET", key, "1");
      await machine.driver.reload(blocked(), machine.signal);
      await expect(command("SET", "four", "1")).rejects.toThrow("OOM");
      await expect(command("EVAL", "redis.call('SET', 'four', '1')", "0")).rejects.toThrow("OOM");
      expect(await command("DBSIZE")).toBe(3);
      expect(await command("DEL", "one")).toBe(1);
      const { checks, effectiveParameters } = await machine.driver.observe(blocked(), machine.signal);
      expect(checks[0]).toMatchObject({ name: "liveness", status: "healthy" });
      expect(effectiveParameters["maxmemory-policy"]).toBe("allkeys-lru");
      expect(await command("FLUSHALL")).toBe("OK");
      await machine.driver.reload(machine.instance, machine.signal);
      expect(await command("SET", "four", "1")).toBe("OK");
      expect((await info()).get("maxmemory_policy")).toBe("allkeys-lru");
    });

    it("starts with blocked writes and all of its data", async () => {
      await machine.stop();
      const { name, content } = machine.driver.render(blocked())[0] ?? { name: "", content: "" };
      await writeFile(join(machine.instance.paths.config, name), content);
      await machine.start();
      await machine.driver.ready(blocked(), machine.signal);
      expect(await command("GET", "four")).toBe("1");
      await expect(command("SET", "five", "1")).rejects.toThrow("OOM");
      await machine.driver.reload(machine.instance, machine.signal);
      expect(await command("SET", "five", "1")).toBe("OK");
    });

    it("has its log rewritten once it is large for the disk, and no snapshot", async () => {
      await writeFile(fileOf("dump.rdb"), "of before");
      const rewrites = async () => Number((await info()).get("aof_rewrites"));
      const free = (totalBytes: number) =>
        machine.driver.reclaimSpace?.(machine.instance, { totalBytes, writableBytes: totalBytes / 2 }, machine.signal);
      for (let n = 0; n < 10; n += 1) await command("SET", "same", "x".repeat(mib));
      await free(1_000 * mib);
      expect([await rewrites(), existsSync(fileOf("dump.rdb"))]).toEqual([0, false]);
      await free(40 * mib);
      await waitUntil("it is rewritten", async () => {
        const now = await info();
        return now.get("aof_rewrite_in_progress") === "0" && Number(now.get("aof_current_size")) < 2 * mib;
      });
      // Another rewrite would gain nothing.
      await free(40 * mib);
      expect(await rewrites()).toBe(1);
      expect(await command("STRLEN", "same")).toBe(mib);
    });

    it("starts without the files of an interrupted rewrite", async () => {
      await machine.stop("SIGKILL");
      await writeFile(fileOf("temp-rewriteaof-bg-7.aof"), "half");
      await machine.bootstrap();
      expect(existsSync(fileOf("temp-rewriteaof-bg-7.aof"))).toBe(false);
      await machine.start();
      await machine.driver.ready(machine.instance, machine.signal);
      expect(await command("STRLEN", "same")).toBe(mib);
    });
  });
});
