import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connectKeeper, type KeeperClient } from "../src/os/keeper-client.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { bootMs } from "./boot-clock.ts";
import { chooseContainment } from "./containment.ts";
import { createKeeper, type Keeper } from "./keeper.ts";
import type { ComponentSpec } from "./keeper-protocol.ts";
import { killQuietly } from "./kill-quietly.ts";
import { agentSlots } from "./succession.ts";

/** Long enough for a busy machine, and over long before a test would end that nobody extends it in. */
const rightMs = 15_000;
let directory: string;
let keeper: Keeper;
/** Looks on; only agents claim. */
let onlooker: KeeperClient;

function agentOf(mode: string): ComponentSpec {
  return {
    name: "agent",
    argv: [
      process.execPath,
      join(import.meta.dirname, "../../test/support/machines/keeper-fixture-agent.mjs"),
      directory,
      mode,
    ],
    env: { RIGHT_MS: String(rightMs) },
    cwd: directory,
    log: { path: join(directory, "agent.log"), maxBytes: 1 << 20, keep: 3 },
    // A first process of a namespace hears no other signal.
    stop: { signal: "SIGKILL", graceMs: 0 },
    deadlineMs: null,
  };
}

async function open(mode = "good"): Promise<void> {
  keeper = createKeeper({
    containment: chooseContainment(undefined),
    owner: undefined,
    runDir: directory,
    logDirectory: directory,
    socketPath: join(directory, "keeper.sock"),
    agent: agentOf(mode),
    successorOf: agentOf,
    bootMs,
    now: Date.now,
    note: () => {},
  });
  await keeper.start();
  const socket = join(directory, "keeper.sock");
  onlooker = await connectKeeper(socket, () => {}, AbortSignal.timeout(60_000));
  const engine = { ...agentOf(""), name: "engine", argv: ["sleep", "1000"], deadlineMs: rightMs };
  // The agent may have claimed already, and then the engine would be its affair.
  await startEngine(engine);
}

async function startEngine(engine: ComponentSpec): Promise<void> {
  for (;;) {
    try {
      await onlooker.order({ op: "start", component: engine });
      return;
    } catch (error) {
      if ((error as Error).message !== "another agent is in charge") throw error;
      // Whether it runs by now comes as news of its own.
      killQuietly(await waitUntil("the agent in charge is known", () => agentPids()[0], { everyMs: 5 }), "SIGKILL");
    }
  }
}

const running = () => agentSlots.filter((slot) => onlooker.component(slot)?.state === "running");
const agentPids = () => running().flatMap((slot) => onlooker.component(slot)?.pid ?? []);
const numbers = () =>
  existsSync(join(directory, "numbers"))
    ? readFileSync(join(directory, "numbers"), "utf8")
        .trim()
        .split("\n")
        .map((line) => line.split(" ").map(Number) as [number: number, pid: number])
    : [];
const extended = (than: number) => waitUntil("the right is extended", () => numbers().length > than);
const outcome = () =>
  waitUntil("there is an outcome", () => {
    const path = join(directory, "outcome");
    return existsSync(path) ? readFileSync(path, "utf8") || undefined : undefined;
  });
const enginePid = () => onlooker.component("engine")?.pid;

function offer(mode: string): void {
  rmSync(join(directory, "outcome"), { force: true });
  // The agent looks for it all the time, and never finds one whose mode is not written yet.
  writeFileSync(join(directory, "offer.new"), mode);
  renameSync(join(directory, "offer.new"), join(directory, "offer"));
}

/** One agent is there and extends; nobody ever extended beside another one, and the engine is the same. */
async function expectOne(engine: number | null | undefined): Promise<void> {
  await waitUntil("one agent is there", () => running().length === 1, { withinMs: 60_000 });
  await extended(numbers().length + 2);
  expect(running()).toHaveLength(1);
  expect(enginePid()).toBe(engine);
  const all = numbers().map(([number]) => number);
  expect(all).toEqual([...all].sort((a, b) => a - b));
  expect(new Set(all).size).toBe(all.length);
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "succession-"));
});
afterEach(async () => {
  onlooker?.close();
  await keeper?.stop();
  await rm(directory, { recursive: true, force: true });
});

describe("agents that change places", () => {
  test("the next one goes on with the right where the one of before stopped, again and again", async () => {
    await open();
    await extended(3);
    const engine = enginePid();
    for (const slot of ["agent-next", "agent", "agent-next"]) {
      offer("good");
      expect(await outcome()).toMatch(/^handed over in \d+$/);
      await waitUntil("the other one is gone", () => running().length === 1);
      expect(running()).toEqual([slot]);
      await expectOne(engine);
    }
  });

  test.each([
    ["crash", /It ended with 2/],
    ["hang", /It was withdrawn/],
    ["crash-in-charge", /It ended with 3/],
    ["hang-in-charge", /It did not take over in time/],
  ])("one that does %s is gone, and the one of before goes on", async (mode, reason) => {
    await open();
    await extended(3);
    const engine = enginePid();
    const [pid] = agentPids();
    offer(mode);
    expect(await outcome()).toMatch(reason);
    await expectOne(engine);
    expect(agentPids()).toEqual([pid]);
    // A good one is taken all the same.
    offer("good");
    expect(await outcome()).toMatch(/^handed over/);
  });

  test("one that ends soon after it took over gives way to the one of before", async () => {
    await open();
    await extended(3);
    const engine = enginePid();
    offer("crash-when-settled");
    expect(await outcome()).toMatch(/^handed over/);
    await expectOne(engine);
    // It is started as the first one was, and hands over as that did.
    offer("good");
    expect(await outcome()).toMatch(/^handed over/);
    await expectOne(engine);
  });

  test("one that does not leave after it handed over is stopped", async () => {
    await open("stays");
    await extended(3);
    const engine = enginePid();
    offer("good");
    expect(await outcome()).toMatch(/^handed over/);
    await expectOne(engine);
    expect(running()).toEqual(["agent-next"]);
  });

  test("whoever is killed, and when, one of them goes on", async () => {
    await open();
    await extended(3);
    const engine = enginePid();
    for (const [victim, afterMs] of [
      ["old", 0],
      ["new", 0],
      ["old", 40],
      ["new", 40],
      ["both", 80],
    ] as const) {
      offer("good");
      await waitUntil(
        "two are there, or it is over already",
        () => running().length === 2 || existsSync(join(directory, "outcome")),
      );
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      const [first = 0, second = 0] = agentSlots
        .map((slot) => onlooker.component(slot))
        .filter((component) => component?.state === "running")
        .sort((a, b) => (a?.startedAt ?? 0) - (b?.startedAt ?? 0))
        .map((component) => component?.pid ?? 0);
      if (victim !== "new" && first > 0) killQuietly(first, "SIGKILL");
      if (victim !== "old" && second > 0) killQuietly(second, "SIGKILL");
      await expectOne(engine);
      rmSync(join(directory, "offer"), { force: true });
    }
  });

  test("nobody but who is in charge has anything started, stopped or extended", async () => {
    await open();
    await extended(3);
    await expect(onlooker.order({ op: "extend", name: "engine", number: 1e9, leftMs: 1 })).rejects.toThrow("in charge");
    await expect(onlooker.order({ op: "stop", name: "engine", signal: "SIGKILL", graceMs: 0 })).rejects.toThrow(
      "in charge",
    );
    await expect(onlooker.order({ op: "claim", run: "made up" })).rejects.toThrow("in charge");
    await expect(onlooker.order({ op: "offer", main: "good", controller: "" })).rejects.toThrow("not in charge");
    await expect(onlooker.order({ op: "yield", state: "" })).rejects.toThrow("not in charge");
    await expect(onlooker.order({ op: "settled", run: "made up" })).rejects.toThrow("not the next one");
    await expectOne(enginePid());
  });
});
