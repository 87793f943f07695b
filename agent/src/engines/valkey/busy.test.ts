import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connectValkey, valkeyVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { watchValkey } from "@holdfast/testing/engines/watched-valkey.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { openSnapshot } from "./backup/snapshot.ts";
import { createValkeyDriver } from "./driver.ts";

const endless = "while true do end";
const endlessWriter = `redis.call('SET', 'half', '1') ${endless}`;
const verifier = valkeyVerifier("secret");

describe.each(["8.1", "9"])("a valkey %s that a script keeps busy", (version) => {
  describe.skipIf(!hasEngine("valkey", version))("in a separate engine", () => {
    let machine: EngineMachine;
    beforeAll(async () => {
      machine = await createEngineMachine(async (deps) => createValkeyDriver(deps), "valkey", version, {
        users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier })],
        // Stored when the catalog allowed it.
        parameters: { "busy-reply-threshold": "600000" },
      });
      await machine.bringUp();
    });
    afterAll(() => machine?.remove());

    const enter = () => connectValkey(machine, { user: "app_user", password: "secret" });
    const observe = () => machine.driver.observe(machine.instance, AbortSignal.timeout(3_000));
    const checkOf = async (name: string) => (await observe()).checks.find((check) => check.name === name);
    const alive = () => waitUntil("it answers", async () => (await checkOf("liveness"))?.status === "healthy");

    /** Resolves when the engine reports that it is busy. */
    async function startScript(script: string): Promise<{ readonly ended: Promise<string> }> {
      const { call, close } = await enter();
      const run = async () => {
        const answer = await call("EVAL", script, "0").then(String, (error: Error) => error.message);
        await close();
        return answer;
      };
      const ended = run();
      await waitUntil("the script is noticed", async () => (await checkOf("commands"))?.status === "degraded");
      return { ended };
    }

    const command = async (...args: string[]) => {
      const { call, close } = await enter();
      try {
        return await call(...args);
      } finally {
        await close();
      }
    };

    beforeEach(alive);

    it("responds to every observation, and reports how to end the script", async () => {
      const { ended } = await startScript(endless);
      for (let round = 0; round < 3; round += 1) {
        const { responded, checks } = await observe();
        expect(responded).toBe(true);
        expect(checks.find(({ name }) => name === "liveness")?.status).toBe("degraded");
        expect(checks.find(({ name }) => name === "commands")?.reason).toMatch(/SCRIPT KILL.*stop/);
      }
      expect(await command("SCRIPT", "KILL")).toBe("OK");
      expect(await ended).toMatch(/killed/);
      await alive();
      expect((await checkOf("commands"))?.status).toBe("healthy");
    });

    it("names FUNCTION KILL for a function", async () => {
      await command("FUNCTION", "LOAD", `#!lua name=lib\nredis.register_function('loop', function() ${endless} end)`);
      const { call, close } = await enter();
      const ended = call("FCALL", "loop", "0").catch((error: Error) => error.message);
      await waitUntil("it is noticed", async () => /FUNCTION KILL/.test((await checkOf("commands"))?.reason ?? ""));
      expect(await command("FUNCTION", "KILL")).toBe("OK");
      expect(await ended).toMatch(/killed/);
      await close();
    });

    it("refuses changes of users with a message, as busy", async () => {
      const { ended } = await startScript(endless);
      const user = create(EngineUserSchema, { username: "other", role: "readonly", verifier });
      const put = machine.driver.users?.put(machine.instance, user, machine.signal);
      await expect(put).rejects.toMatchObject({ name: "EngineBusy", message: expect.stringContaining("SCRIPT KILL") });
      const reloaded = machine.driver.reload(machine.instance, machine.signal);
      await expect(reloaded).rejects.toMatchObject({ name: "EngineBusy" });
      await command("SCRIPT", "KILL");
      await ended;
    });

    it("has a snapshot wait for the end of the script", async () => {
      await command("SET", "kept", "1");
      const watched = await watchValkey(machine.instance);
      const isRefused = (before: number) =>
        waitUntil("the snapshot is refused", () => watched.refusals > before, { everyMs: 10 });
      const { ended } = await startScript(endless);
      const opened = openSnapshot(watched.instance, machine.signal);
      await isRefused(0);
      await command("SCRIPT", "KILL");
      await ended;
      const source = await opened;
      const script = await startScript(endless);
      const before = watched.refusals;
      const bytes: Uint8Array[] = [];
      const reading = (async () => {
        for (const stream of source.streams) for await (const chunk of stream.bytes) bytes.push(chunk);
      })();
      await isRefused(before);
      await command("SCRIPT", "KILL");
      await script.ended;
      await reading;
      await source.close();
      await watched.close();
      expect(Buffer.concat(bytes).includes("kept")).toBe(true);
    });

    it("reports why it is not ready, to an agent that finds it running", async () => {
      const { ended } = await startScript(endless);
      const ready = machine.driver.ready(machine.instance, machine.signal);
      await expect(ready).rejects.toMatchObject({
        name: "EngineBusy",
        message: expect.stringContaining("SCRIPT KILL"),
      });
      await command("SCRIPT", "KILL");
      await ended;
      await machine.driver.ready(machine.instance, machine.signal);
    });

    it("is ready with full memory, and accepts deletions", async () => {
      await command("SET", "large", "x".repeat(1 << 20));
      await machine.stop();
      const config = join(machine.instance.paths.config, "valkey.conf");
      const text = await readFile(config, "utf8");
      await writeFile(config, text.replace(/^maxmemory ".*"$/m, 'maxmemory "1000000"'));
      await machine.start();
      await machine.driver.ready(machine.instance, machine.signal);
      await expect(command("SET", "more", "1")).rejects.toThrow("OOM");
      expect((await observe()).checks[0]).toMatchObject({ name: "liveness", reason: "The memory is full." });
      expect(await command("DEL", "large")).toBe(1);
      await machine.stop();
      await machine.writeConfig();
      await machine.start();
      await machine.driver.ready(machine.instance, machine.signal);
    });

    it("ends a script without writes, so that it shuts down cleanly", async () => {
      const { ended } = await startScript(endless);
      await machine.driver.endCommands?.(machine.instance, machine.signal);
      expect(await ended).toMatch(/killed/);
      await alive();
    });

    it("restarts without the writes of a script that was running when it was killed", async () => {
      await command("SET", "kept", "2");
      await startScript(endlessWriter);
      await expect(command("SCRIPT", "KILL")).rejects.toThrow("UNKILLABLE");
      await machine.driver.endCommands?.(machine.instance, machine.signal);
      await machine.stop("SIGKILL");
      await machine.start();
      await machine.driver.ready(machine.instance, machine.signal);
      expect([await command("GET", "kept"), await command("GET", "half")]).toEqual(["2", null]);
    });
  });
});
