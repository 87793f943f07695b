import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { bootMs } from "../../keeper/boot-clock.ts";
import { chooseContainment, type Containment } from "../../keeper/containment.ts";
import { createKeeper } from "../../keeper/keeper.ts";
import { connectKeeper } from "./keeper-client.ts";

/** A keeper so slow that a component may have ended before its start is confirmed. */
function slow(containment: Containment): Containment {
  return {
    ...containment,
    async enclose(pid) {
      await waitUntil("it has ended", () => !existsSync(`/proc/${pid}`), { everyMs: 1 });
      return containment.enclose(pid);
    },
  };
}

test("a component that ends during its start counts as empty in any order of the messages", async () => {
  const directory = await mkdtemp(join(tmpdir(), "keeper-client-"));
  const socketPath = join(directory, "keeper.sock");
  const keeper = createKeeper({
    containment: slow(chooseContainment(undefined)),
    owner: undefined,
    runDir: directory,
    logDirectory: directory,
    socketPath,
    agent: undefined,
    specOfMain: () => {
      throw new Error("it runs no agent");
    },
    bootMs,
    now: Date.now,
    note: () => {},
  });
  await keeper.start();
  const client = await connectKeeper(socketPath, () => {}, AbortSignal.timeout(60_000));
  onTestFinished(async () => {
    client.close();
    await keeper.stop();
    await rm(directory, { recursive: true, force: true });
  });
  const component = {
    name: "short",
    argv: ["true"],
    env: {},
    cwd: directory,
    log: { path: join(directory, "log"), maxBytes: 1 << 20, keep: 3 },
    stop: { signal: "SIGKILL", graceMs: 0 },
    deadlineMs: null,
  } as const;
  for (let starts = 1; starts <= 10; starts += 1) {
    const over = new Promise((resolve) => {
      const news = client.subscribe(({ state }) => {
        if (state !== "empty") return;
        news.close();
        resolve(state);
      });
    });
    await client.order({ op: "start", component });
    await over;
    expect(client.component("short")).toMatchObject({ state: "empty", starts });
  }
});
