import { type ChildProcess, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync as readlink,
  rmSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { until, waitUntil } from "@holdfast/testing/wait-until.ts";
import { chooseContainment } from "./containment.ts";
import { createKeeper, type Keeper } from "./keeper.ts";
import type { ComponentSpec, ComponentStatus, KeeperEvent, KeeperReply, KeeperRequest } from "./keeper-protocol.ts";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";

type Request = KeeperRequest extends infer R ? (R extends KeeperRequest ? Omit<R, "id"> : never) : never;

/** A process with a child in a separate session, like a PostgreSQL backend. */
const family = ["sh", "-c", "setsid sleep 1000 & echo made; sleep 1000"];
let directory: string;
/** The clock of deadlines, and how often it was read. */
let bootMs = 0;
let reads = 0;

/** Resolves once the deadline of a component was compared with the clock again. */
async function checkedAgain(): Promise<void> {
  const before = reads;
  await until(() => reads > before);
}

beforeEach(async () => {
  bootMs = 0;
  directory = await mkdtemp(join(tmpdir(), "keeper-"));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

describe.each(["namespace", "group"] as const)("a keeper with components by %s", (kind) => {
  let keeper: Keeper;
  let agent: Awaited<ReturnType<typeof dial>>;

  beforeEach(async () => {
    const containment = chooseContainment(undefined, { allowNamespaces: kind === "namespace" });
    expect(containment.kind).toBe(kind);
    const socketPath = join(directory, "keeper.sock");
    const note = () => {};
    keeper = createKeeper({
      containment,
      owner: undefined,
      runDir: directory,
      logDirectory: directory,
      socketPath,
      agent: undefined,
      specOfMain: () => specOf("agent", []),
      bootMs() {
        reads += 1;
        return bootMs;
      },
      now: Date.now,
      note,
    });
    await keeper.start();
    agent = await dial(socketPath);
  });
  afterEach(async () => {
    agent.close();
    await keeper.stop();
  });

  test("starts a component once and refuses a second start while it runs", async () => {
    const reply = await agent.send({ op: "start", component: specOf("engine", family) });
    expect(statusIn(reply, "engine")).toMatchObject({ state: "running", starts: 1 });
    expect(await agent.send({ op: "start", component: specOf("engine", family) })).toMatchObject({ ok: false });
  });

  test("refuses a container on a machine without users for it, and another role than that", async () => {
    const container = { ...specOf("engine", family), role: "container" as const };
    expect(await agent.send({ op: "start", component: container })).toMatchObject({
      ok: false,
      error: expect.stringMatching(/^this machine has no (user ids|namespaces) for containers$/) as string,
    });
    const root = JSON.parse(JSON.stringify({ ...specOf("engine", family), role: "root" })) as ComponentSpec;
    expect(await agent.send({ op: "start", component: root })).toMatchObject({
      ok: false,
      error: "role is not a role",
    });
    expect(await agent.send({ op: "start", component: specOf("engine", family) })).toMatchObject({ ok: true });
  });

  test("begins each line of a stamped log with its time", async () => {
    const spec = specOf("engine", ["sh", "-c", "printf 'a\\n\\nümlaut\\nend'"]);
    await agent.send({ op: "start", component: { ...spec, log: { ...spec.log, stamped: true } } });
    await agent.event((component) => component.state === "empty");
    const lines = (await readFile(`${spec.log.path}.1`, "utf8")).trimEnd().split("\n");
    const [time = ""] = lines[0]?.split(" ") ?? [];
    expect(new Date(time).toISOString()).toBe(time);
    expect(lines.map((line) => line.slice(time.length + 1))).toEqual(["a", "", "ümlaut", "end"]);
  });

  test("marks lines of standard error in a stamped log, if the component asks for it", async () => {
    const spec = specOf("engine", ["sh", "-c", "echo out; sleep 0.1; echo error >&2; sleep 0.1; echo out"]);
    const log = { ...spec.log, stamped: true, marksErrors: true };
    await agent.send({ op: "start", component: { ...spec, log } });
    await agent.event((component) => component.state === "empty");
    const lines = (await readFile(`${spec.log.path}.1`, "utf8")).trimEnd().split("\n");
    expect(lines.map((line) => line.slice(line.indexOf("Z") + 1)).toSorted()).toEqual([" out", " out", "!error"]);
  });

  test("refuses names of object prototypes, and continues", async () => {
    for (const word of inheritedNames) {
      const tried = [
        { op: word },
        { op: "stop", name: "engine", signal: word, graceMs: 0 },
        { op: "stop", name: "__proto__", signal: "SIGTERM", graceMs: 0 },
        { op: "start", component: { ...specOf("engine", family), stop: { signal: word, graceMs: 0 } } },
        JSON.parse(`{"op":"start","${word}":{},"component":{"${word}":1}}`) as object,
      ];
      for (const request of tried) expect(await agent.send(request as Request), word).toMatchObject({ ok: false });
    }
    expect(await agent.send({ op: "status" })).toMatchObject({ ok: true, components: [] });
  });

  test("reports a component as empty only once none of its processes remains", async () => {
    await agent.send({ op: "start", component: specOf("engine", family) });
    await until(() => markedProcesses(directory).length >= 2);
    const { pid } = statusIn(await agent.send({ op: "status" }), "engine");
    process.kill(pid as number, "SIGKILL");
    const ended = await agent.event((component) => component.state === "empty");
    expect(markedProcesses(directory)).toEqual([]);
    expect(ended.cause).toBe("exited");
    expect(await agent.send({ op: "start", component: specOf("engine", family) })).toMatchObject({ ok: true });
  });

  test("starts a component only if its trace can be written, even beside remains of an earlier trace", async () => {
    const obstacle = join(directory, "engine.trace.new");
    mkdirSync(obstacle);
    const component = specOf("engine", family);
    expect(await agent.send({ op: "start", component })).toMatchObject({ ok: false });
    expect(markedProcesses(directory)).toEqual([]);
    rmSync(obstacle, { recursive: true });
    writeFileSync(join(directory, "engine.trace"), "");
    expect(await agent.send({ op: "start", component })).toMatchObject({ ok: true });
  });

  test("kills the component at its deadline and not before", async () => {
    await agent.send({ op: "start", component: { ...specOf("engine", family), untilMs: bootMs + 300 } });
    await agent.send({ op: "extend", name: "engine", number: 7, untilMs: bootMs + 500 });
    bootMs = 499;
    await checkedAgain();
    expect(statusIn(await agent.send({ op: "status" }), "engine").state).toBe("running");
    bootMs = 500;
    const ended = await agent.event((component) => component.state === "empty");
    expect(ended.cause).toBe("deadline");
  });

  test("a deadline that has passed ends the component without a delay", async () => {
    await agent.send({ op: "start", component: { ...specOf("engine", family), untilMs: bootMs + 300 } });
    await agent.send({ op: "extend", name: "engine", number: 7, untilMs: bootMs + 500 });
    bootMs += 499;
    await checkedAgain();
    expect(statusIn(await agent.send({ op: "status" }), "engine").state).toBe("running");
    await agent.send({ op: "extend", name: "engine", number: 8, untilMs: bootMs - 1 });
    const ended = await agent.event((component) => component.state === "empty");
    expect(ended.cause).toBe("deadline");
  });

  test("refuses an extension with a lower number, and removes a deadline with null", async () => {
    await agent.send({ op: "start", component: { ...specOf("engine", family), untilMs: bootMs + 1_500 } });
    await agent.send({ op: "extend", name: "engine", number: 5, leftMs: null });
    expect(await agent.send({ op: "extend", name: "engine", number: 4, untilMs: bootMs + 1 })).toMatchObject({
      ok: false,
    });
    await agent.send({ op: "start", component: { ...specOf("other", family), untilMs: bootMs + 1_500 } });
    bootMs = 1_000_000;
    await agent.event(({ name, state }) => name === "other" && state === "empty");
    expect(statusIn(await agent.send({ op: "status" }), "engine").state).toBe("running");
  });

  test("stops by the signal and responds once it is empty; SIGKILL follows the grace period", async () => {
    const deaf = ["sh", "-c", "trap '' TERM; echo deaf by now; sleep 1000 & wait"];
    await agent.send({ op: "start", component: specOf("engine", deaf) });
    await until(() => logOf(directory).includes("deaf by now"));
    const reply = await agent.send({ op: "stop", name: "engine", signal: "SIGTERM", graceMs: 200 });
    expect(statusIn(reply, "engine")).toMatchObject({ state: "empty", cause: "requested" });
    expect(markedProcesses(directory)).toEqual([]);
  });

  test("reports running components to an agent that reconnects", async () => {
    await agent.send({ op: "start", component: specOf("engine", family) });
    const before = statusIn(await agent.send({ op: "status" }), "engine");
    agent.close();
    agent = await dial(join(directory, "keeper.sock"));
    expect(statusIn(await agent.send({ op: "status" }), "engine")).toEqual(before);
  });

  test("retains only the newest segments of a log", async () => {
    const script = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; sleep 1000";
    const log = { path: join(directory, "log"), maxBytes: 1000, keep: 3 };
    await agent.send({ op: "start", component: { ...specOf("engine", ["sh", "-c", script]), log } });
    await until(() => logOf(directory).includes("line 1999\n"));
    expect(readdirSync(directory).filter((name) => name.startsWith("log.")).length).toBeLessThanOrEqual(3);
  });

  test("continues log and component if the next segment cannot be created", async () => {
    const script = "until [ -e go ]; do sleep 0.01; done; seq 1000; sleep 1000";
    const log = { path: join(directory, "log"), maxBytes: 1000, keep: 3 };
    await agent.send({ op: "start", component: { ...specOf("engine", ["sh", "-c", script]), log } });
    mkdirSync(join(directory, "log.2"));
    writeFileSync(join(directory, "go"), "");
    await until(() => readFileSync(join(directory, "log.1"), "utf8").endsWith("\n1000\n"));
    await agent.send({ op: "start", component: specOf("other", ["sh", "-c", "echo hello; sleep 1000"]) });
  });

  test("reports why a program cannot start", async () => {
    const reply = await agent.send({ op: "start", component: { ...specOf("engine", family), cwd: "/nowhere" } });
    expect(reply).toMatchObject({ ok: false });
  });
});

describe("a keeper process", () => {
  const keepers: ChildProcess[] = [];
  afterEach(async () => {
    for (const each of keepers) each.kill("SIGKILL");
    await until(() => keepers.every(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null));
    await until(() => markedProcesses(directory).length === 0);
  });

  function run(agentMain: string) {
    const child = spawn(process.execPath, [join(import.meta.dirname, "main.ts")], {
      env: {
        PATH: process.env["PATH"],
        HOLDFAST_STATE_DIR: directory,
        HOLDFAST_RUN_DIR: directory,
        HOLDFAST_AGENT_MAIN: agentMain,
      },
      stdio: "ignore",
    });
    keepers.push(child);
    return child;
  }

  test("ends all components when it is killed", async () => {
    const child = run("/dev/null");
    await until(() => existsSync(join(directory, "keeper.sock")));
    const agent = await dial(join(directory, "keeper.sock"));
    const log = { path: join(directory, "log", "engine.log"), maxBytes: 1 << 20, keep: 3 };
    await agent.send({ op: "start", component: { ...specOf("engine", family), log } });
    await until(() => markedProcesses(directory).length >= 2);
    child.kill("SIGKILL");
    await until(() => markedProcesses(directory).length === 0);
    agent.close();
  });

  test("restarts its agent when that ends", async () => {
    run("/dev/null");
    await until(() => existsSync(join(directory, "keeper.sock")));
    const agent = await dial(join(directory, "keeper.sock"));
    // The agent may have been restarted before the test subscribed.
    await agent.event((component) => component.name === "agent" && component.starts >= 2);
    agent.close();
  });

  test("stops components in order when it is stopped", async () => {
    const child = run("/dev/null");
    await until(() => existsSync(join(directory, "keeper.sock")));
    const agent = await dial(join(directory, "keeper.sock"));
    const stop = { signal: "SIGTERM", graceMs: 60_000 } as const;
    const log = { path: join(directory, "log", "engine.log"), maxBytes: 1 << 20, keep: 3 };
    const polite = ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo polite by now; while :; do sleep 0.05; done"];
    await agent.send({ op: "start", component: { ...specOf("engine", polite), stop, log } });
    await until(() => logOf(join(directory, "log"), "engine.log").includes("polite by now"));
    child.kill("SIGTERM");
    await until(() => child.exitCode !== null);
    expect(child.exitCode).toBe(0);
    expect(logOf(join(directory, "log"), "engine.log")).toContain("bye");
  });
});

function specOf(name: string, argv: string[]): ComponentSpec {
  return {
    name,
    argv,
    env: {},
    cwd: directory,
    log: { path: join(directory, "log"), maxBytes: 1 << 20, keep: 3 },
    stop: { signal: "SIGKILL", graceMs: 1000 },
    deadlineMs: null,
  };
}

/** Processes with the test's working directory, except the agent. */
function markedProcesses(path: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      if (!/^\d+$/.test(pid) || readFileSync(`/proc/${pid}/stat`, "latin1").includes(") Z ")) return false;
      const command = readFileSync(`/proc/${pid}/cmdline`, "latin1");
      return readlink(`/proc/${pid}/cwd`) === path && !command.includes("unshare") && !command.includes("main.ts");
    } catch {
      return false;
    }
  });
}

function logOf(path: string, log = "log"): string {
  const names = readdirSync(path).filter((name) => name.startsWith(`${log}.`));
  return names.map((name) => readFileSync(join(path, name), "utf8")).join("");
}

function statusIn(reply: KeeperReply, name: string): ComponentStatus {
  if (!reply.ok) throw new Error(reply.error);
  const found = reply.components.find((component) => component.name === name);
  if (found === undefined) throw new Error(`no component ${name}`);
  return found;
}

async function dial(path: string) {
  const socket: Socket = connect(path);
  const waiting = new Map<number, (reply: KeeperReply) => void>();
  const events: ComponentStatus[] = [];
  let id = 0;
  createInterface({ input: socket }).on("line", (line) => {
    const message = JSON.parse(line) as KeeperReply | KeeperEvent;
    if ("event" in message) {
      if (message.event === "component") events.push(message.component);
    } else waiting.get(message.id)?.(message);
  });
  await once(socket, "connect");
  return {
    send(request: Request): Promise<KeeperReply> {
      id += 1;
      socket.write(`${JSON.stringify({ ...request, id })}\n`);
      return new Promise((resolve) => waiting.set(id, resolve));
    },
    event(matches: (component: ComponentStatus) => boolean): Promise<ComponentStatus> {
      const describe = () => JSON.stringify(events);
      return waitUntil(`an event: ${matches}`, () => events.find(matches), { everyMs: 5, describe });
    },
    close: () => socket.destroy(),
  };
}
