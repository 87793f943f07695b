import { once } from "node:events";
import { request } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type AppMachine, startAppMachine, testRelease } from "@holdfast/testing/machines/app-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type ImageRegistry, startImageRegistry } from "@holdfast/testing/servers/image-registry.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const skipped = asRoot ? await requireRecipes(import.meta.filename, "apps") : "needs root: containers of a machine";

describe.skipIf(skipped !== undefined)("a deployment that is killed", () => {
  let machine: AppMachine;
  let registry: ImageRegistry;
  let images: readonly string[];
  let deployed = 0;

  beforeAll(async () => {
    [registry, machine] = await Promise.all([startImageRegistry(), startAppMachine("127.94")]);
    images = [await registry.push("shop/web", { NOTE: "one" }), await registry.push("shop/web", { NOTE: "two" })];
    await deploy();
    await untilServed();
  });
  afterAll(async () => {
    await machine.remove();
    await registry.remove();
  });

  /** Sends the spec of the next release, whose image differs from the one before. */
  function deploy(): Promise<unknown> {
    deployed += 1;
    return resend();
  }

  function resend(): Promise<unknown> {
    const release = testRelease(registry, { id: `r-${deployed}`, imageRef: images[deployed % images.length] ?? "" });
    return machine.converge({ releases: [release], servingReleaseId: release.id });
  }

  /** The release that responds; undefined without a response of the status 200. */
  async function served(): Promise<string | undefined> {
    return (await machine.get("/").catch(() => undefined))?.release;
  }

  async function untilServed(): Promise<void> {
    const id = `r-${deployed}`;
    await waitUntil(`${id} serves`, async () => (await served()) === id, { describe: machine.log });
    await waitUntil(
      "one release remains",
      async () => (await machine.filesOf("releases")).join() === id && machine.pidsOf("/app/server.mjs").length === 1,
      { describe: machine.log },
    );
  }

  test("with its agent at any step fails no request, and leaves one live release", async () => {
    for (let step = 0; step < 8; step += 1) {
      let failed = 0;
      const ended = new AbortController();
      const client = (async () => {
        while (!ended.signal.aborted) if ((await served()) === undefined) failed += 1;
      })();
      void deploy();
      // Time: the moment of the kill.
      await sleep(step * 200);
      machine.killAgent();
      await machine.connected();
      await resend();
      await untilServed();
      ended.abort();
      await client;
      expect({ step, failed }).toEqual({ step, failed: 0 });
    }
  });

  test.each(["skopeo", "umoci", "runc", "haproxy", "/app/server.mjs"])(
    "with %s ends with one live release",
    async (program) => {
      void deploy();
      await waitUntil(`${program} runs`, () => machine.pidsOf(program).length > 0, { everyMs: 5 });
      machine.kill(program);
      await waitUntil("it is applied", async () => {
        await resend();
        return (await served()) === `r-${deployed}`;
      });
      await untilServed();
    },
  );

  test("with its machine at any step ends with one live release", async () => {
    for (let step = 0; step < 6; step += 1) {
      void deploy();
      // Time: the moment of the reboot.
      await sleep(step * 300);
      await machine.reboot();
      await machine.connected();
      await resend();
      await untilServed();
    }
  });

  test("by a fork bomb is impossible: it ends at its limit, and neither the machine nor another request notices", async () => {
    const bomb = machine.get<{ refused: boolean; started: number }>("/bomb?limit=5000");
    await waitUntil("the bomb runs", () => machine.pidsOf("/bin/sleep 100").length > 0, { everyMs: 5 });
    expect(await machine.logLines()).toContain(`release r-${deployed} listens`);
    const { refused, started } = await bomb;
    expect(refused).toBe(true);
    expect(started).toBeLessThan(4_096);
    expect(await served()).toBe(`r-${deployed}`);
  });

  test("by its own memory starts again, and the agent runs on", async () => {
    const agents = machine.agentPids();
    const [before] = machine.pidsOf("/app/server.mjs");
    await machine.get("/memory").catch(() => undefined);
    await untilServed();
    expect(machine.pidsOf("/app/server.mjs")).not.toContain(before);
    expect(machine.agentPids()).toEqual(agents);
    const reason = /^The program was killed \(out of memory\) and is started again/;
    expect((await machine.logLines()).some((line) => reason.test(line))).toBe(true);
  });

  test("an upgraded connection stays with the old release until its drain ends", async () => {
    const call = request({ host: machine.address, port: machine.port, headers: upgradeHeaders, agent: false });
    const upgraded = once(call, "upgrade") as Promise<[unknown, Socket]>;
    call.end();
    const [, socket] = await upgraded;
    const closed = once(socket, "close");
    const echo = async (text: string) => {
      socket.write(text);
      return String((await once(socket, "data")) as unknown);
    };
    expect(await echo("a")).toBe("a");
    const replaced = deploy();
    await waitUntil("the next release serves", async () => (await served()) === `r-${deployed}`);
    expect(await echo("b")).toBe("b");
    await closed;
    await replaced;
    await untilServed();
  });
});

const upgradeHeaders = { connection: "upgrade", upgrade: "echo" };
