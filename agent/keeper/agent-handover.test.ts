import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connectKeeper, type KeeperClient } from "../src/os/keeper-client.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { bootMs } from "./boot-clock.ts";
import { chooseContainment } from "./containment.ts";
import { createKeeper, type Keeper } from "./keeper.ts";
import type { ComponentSpec } from "./keeper-protocol.ts";
import { signalIfAlive } from "./signal-process.ts";
import { agentSlots } from "./agent-handover.ts";

/** A deadline longer than a busy machine needs, and far shorter than a test whose agent does not extend it. */
const rightMs = 15_000;
let directory: string;
let keeper: Keeper;
/** Observes only, and never claims. */
let onlooker: KeeperClient;

function agentOf(mode: string): ComponentSpec {
  return {
    name: "agent",
    argv: [
      process.execPath,
      join(import.meta.dirname, "../../testing/src/machines/keeper-fixture-agent.mjs"),
      directory,
      mode,
    ],
    env: { RIGHT_MS: String(rightMs) },
    cwd: directory,
    log: { path: join(directory, "agent.log"), maxBytes: 1 << 20, keep: 3 },
    // The first process of a PID namespace receives no other signal.
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
    specOfMain: agentOf,
    bootMs,
    now: Date.now,
    note: () => {},
  });
  await keeper.start();
  const socket = join(directory, "keeper.sock");
  onlooker = await connectKeeper(socket, () => {}, AbortSignal.timeout(60_000));
  const engine = { ...agentOf(""), name: "engine", argv: ["sleep", "1000"], untilMs: bootMs() + rightMs };
  // Once the agent has claimed, only it may start the engine.
  await startEngine(engine);
}

async function startEngine(engine: ComponentSpec): Promise<void> {
  for (;;) {
    try {
      await onlooker.order({ op: "start", component: engine });
      return;
    } catch (error) {
      if ((error as Error).message !== "another agent is in charge") throw error;
      // The agent's state arrives as a separate event.
      signalIfAlive(await waitUntil("the agent in charge runs", () => agentPids()[0], { everyMs: 5 }), "SIGKILL");
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
const extended = (than: number) => waitUntil("the lease is extended", () => numbers().length > than);
const outcome = () =>
  waitUntil("there is an outcome", () => {
    const path = join(directory, "outcome");
    return existsSync(path) ? readFileSync(path, "utf8") || undefined : undefined;
  });
const enginePid = () => onlooker.component("engine")?.pid;

function offer(mode: string): void {
  rmSync(join(directory, "outcome"), { force: true });
  // Renamed into place, since the agent polls for the file and must not read it before its mode is written.
  writeFileSync(join(directory, "offer.new"), mode);
  renameSync(join(directory, "offer.new"), join(directory, "offer"));
}

/**
 * Expects that exactly one agent runs and extends, that no two agents extended at the same time, and that the engine is
 * the same.
 */
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

describe("agents that hand over", () => {
  test("the new agent continues the lease of the old one, repeatedly", async () => {
    await open();
    await extended(3);
    const engine = enginePid();
    for (const slot of ["agent-next", "agent", "agent-next"]) {
      offer("good");
      expect(await outcome()).toMatch(/^handed over in \d+$/);
      await waitUntil("the other agent has ended", () => running().length === 1);
      expect(running()).toEqual([slot]);
      await expectOne(engine);
    }
  });

  test.each([
    ["crash", /It ended with 2/],
    ["hang", /It was withdrawn/],
    ["crash-in-charge", /It ended with 3/],
    ["hang-in-charge", /It did not take over in time/],
  ])("an agent that does %s ends, and the old one stays in charge", async (mode, reason) => {
    await open();
    await extended(3);
    const engine = enginePid();
    const [pid] = agentPids();
    offer(mode);
    expect(await outcome()).toMatch(reason);
    await expectOne(engine);
    expect(agentPids()).toEqual([pid]);
    // A working agent takes over afterwards.
    offer("good");
    expect(await outcome()).toMatch(/^handed over/);
  });

  test("an agent that ends soon after a handover is replaced by the previous release", async () => {
    await open();
    await extended(3);
    const engine = enginePid();
    offer("crash-when-settled");
    expect(await outcome()).toMatch(/^handed over/);
    await expectOne(engine);
    // The restarted agent can hand over like the first one.
    offer("good");
    expect(await outcome()).toMatch(/^handed over/);
    await expectOne(engine);
  });

  test("an agent that does not exit after a handover is stopped", async () => {
    await open("stays");
    await extended(3);
    const engine = enginePid();
    offer("good");
    expect(await outcome()).toMatch(/^handed over/);
    await expectOne(engine);
    expect(running()).toEqual(["agent-next"]);
  });

  test("one agent remains in charge if any of them is killed at any time", async () => {
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
      // Time: the moment of the kill.
      await new Promise((resolve) => setTimeout(resolve, afterMs));
      const [first = 0, second = 0] = agentSlots
        .map((slot) => onlooker.component(slot))
        .filter((component) => component?.state === "running")
        .sort((a, b) => (a?.startedAt ?? 0) - (b?.startedAt ?? 0))
        .map((component) => component?.pid ?? 0);
      if (victim !== "new" && first > 0) signalIfAlive(first, "SIGKILL");
      if (victim !== "old" && second > 0) signalIfAlive(second, "SIGKILL");
      await expectOne(engine);
      rmSync(join(directory, "offer"), { force: true });
    }
  });

  test("only the agent in charge can start, stop or extend components", async () => {
    await open();
    await extended(3);
    await expect(onlooker.order({ op: "extend", name: "engine", number: 1e9, untilMs: bootMs() + 1 })).rejects.toThrow(
      "in charge",
    );
    await expect(onlooker.order({ op: "stop", name: "engine", signal: "SIGKILL", graceMs: 0 })).rejects.toThrow(
      "in charge",
    );
    await expect(onlooker.order({ op: "claim", run: "unknown" })).rejects.toThrow("in charge");
    await expect(onlooker.order({ op: "offer", main: "good", controller: "" })).rejects.toThrow("not in charge");
    await expect(onlooker.order({ op: "yield", state: "" })).rejects.toThrow("not in charge");
    await expect(onlooker.order({ op: "settled", run: "unknown" })).rejects.toThrow("not the next one");
    await expectOne(enginePid());
  });
});
