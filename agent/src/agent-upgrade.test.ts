import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Lane, TaskClass, type TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { type AgentCode, bundleAgent } from "@holdfast/testing/machines/agent-code.ts";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createControlGroup } from "./os/control-group.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const password = "a-password-of-the-test";
const skipped = whyNoAgentMachine("postgresql", "17");
/** Content of a file of /proc; empty for a process that has ended. */
function textOf(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return "";
  }
}

const mainOfAgent = /code\/([0-9a-f]{32}\/)?main\.mjs/;

describe.skipIf(skipped !== undefined)(
  `an agent that is upgraded under PostgreSQL${skipped === undefined ? "" : ` (skipped: ${skipped})`}`,
  () => {
    const codeOf = skipped === undefined ? bundleAgent() : undefined;
    let machine: AgentMachine;
    let writer: Client;
    const written = { rows: 0, failed: 0, stop: false };
    let writing: Promise<void>;
    let tasks = 0;
    /** The first process, for this whole file. */
    let engine: number[];

    beforeAll(async () => {
      machine = await startAgentMachine({
        engine: "postgresql",
        version: "17",
        memoryBytes: 700 << 20,
        spec: {
          users: [{ username: "app_user", role: "admin", verifier: scramVerifier(password) }],
          databases: ["defaultdb"],
        },
      });
      expect((await machine.converge()).failure).toBeUndefined();
      writer = await connectPostgresql(machine.endpoint, { user: "app_user", password });
      await writer.query("CREATE TABLE written (n int PRIMARY KEY)");
      writing = write();
      engine = postmaster();
    });
    afterAll(async () => {
      written.stop = true;
      await writing;
      await writer?.end();
      await machine?.remove();
    });
    beforeEach(() => onTestFailed(() => console.log(machine.log())));

    async function write(): Promise<void> {
      while (!written.stop) {
        await writer.query("INSERT INTO written VALUES ($1)", [written.rows]).then(
          () => (written.rows += 1),
          () => (written.failed += 1),
        );
        // Time: the rate of the writer.
        await sleep(5);
      }
    }

    /** The first process of its component; a process just forked has the same command line. */
    const isFirst = (pid: number) => /^NSpid:.*\t1$/m.test(textOf(pid, "status"));
    const postmaster = () => machine.pidsOf("bin/postgres").filter(isFirst);
    const agents = () => machine.pidsOf("").filter((pid) => mainOfAgent.test(textOf(pid, "cmdline")) && isFirst(pid));
    const runs = () => machine.controller.hellos.at(-1)?.agentDigest;
    const received = () => {
      const path = join(machine.directory, "state/code");
      return existsSync(path) ? readdirSync(path) : [];
    };

    function upgrade(
      code: AgentCode,
      change: { sha256?: string; digest?: string; readyWithinMs?: number } = {},
    ): Promise<TaskResult> {
      const { controller } = machine;
      tasks += 1;
      const id = `upgrade-${tasks}`;
      controller.payloads.set(id, code.bytes);
      const reference = { id, sizeBytes: BigInt(code.bytes.byteLength), sha256: change.sha256 ?? code.sha256 };
      const value = {
        release: code.release,
        digest: change.digest ?? code.digest,
        package: reference,
        readyWithinMs: change.readyWithinMs ?? 30_000,
      };
      const task = {
        id,
        ownerId: "m-1",
        generation: BigInt(tasks),
        term: 0n,
        lane: Lane.BULK,
        class: TaskClass.DURABLE,
        input: { case: "upgradeAgent" as const, value },
      };
      return controller.perform(task);
    }

    /** Milliseconds without an agent in charge; undefined if the machine was too busy for a handover within 1 s. */
    function gapOf({ failure, output }: TaskResult): number | undefined {
      if (failure === undefined && output.case === "upgradeAgent") return output.value.gapMs;
      expect(failure?.message).toContain("did not take over in time");
      return undefined;
    }

    async function upgraded(code: AgentCode): Promise<void> {
      while (gapOf(await upgrade(code)) === undefined);
    }

    /** Sends requests to the machine until it is stopped, which resolves with all results. */
    function startAsking() {
      const requests: Promise<TaskResult>[] = [];
      let isRunning = true;
      const asking = (async () => {
        while (isRunning) {
          const input = { case: "listEngineUsers" as const, value: {} };
          const task = { ...machine.header, lane: Lane.QUERY, class: TaskClass.QUICK, input };
          requests.push(machine.controller.perform(task));
          // Time: the rate of the requests.
          await sleep(50);
        }
      })();
      return {
        async stop(): Promise<TaskResult[]> {
          isRunning = false;
          await asking;
          return Promise.all(requests);
        },
      };
    }

    test("hands over to a new agent without an effect on the engine and its users", async () => {
      const code = codeOf?.("2.0.0") as AgentCode;
      const seen = machine.controller.observations.length;
      let gapMs: number | undefined;
      do {
        const asking = startAsking();
        gapMs = gapOf(await upgrade(code));
        const answers = asking.stop();
        // Requests sent during the upgrade get results, except those that were sent to an agent that was killed late.
        if (gapMs !== undefined) for (const { failure } of await answers) expect(failure).toBeUndefined();
      } while (gapMs === undefined);
      expect(gapMs).toBeLessThanOrEqual(1_000);
      const { hellos } = machine.controller;
      expect(hellos.at(-1)).toMatchObject({ agentVersion: "2.0.0", agentDigest: code.digest });
      const before = hellos.filter(({ agentDigest }) => agentDigest !== code.digest);
      expect(before.map(({ sessionId }) => sessionId)).toContain(hellos.at(-1)?.replacesSessionId);
      await waitUntil("one agent is there", () => agents().length === 1);
      expect(postmaster()).toEqual(engine);
      await waitUntil("it reported the engine", () => machine.controller.observations.length > seen);
      expect(new Set(machine.controller.observations.slice(seen).map(({ state }) => state))).toEqual(
        new Set(["running"]),
      );
      expect(written.failed).toBe(0);
    });

    test("rejects code that differs from the task, and stores nothing of it", async () => {
      const [pid] = agents();
      const code = codeOf?.("2.1.0") as AgentCode;
      const before = received();
      expect((await upgrade(code, { sha256: "0".repeat(64) })).failure).toMatchObject({ code: "payload_corrupt" });
      expect((await upgrade(code, { digest: "0".repeat(32) })).failure).toMatchObject({ code: "payload_corrupt" });
      expect((await upgrade({ ...code, bytes: code.bytes.subarray(0, 1000) })).failure).toMatchObject({
        code: "payload_corrupt",
      });
      expect(received()).toEqual(before);
      expect(agents()).toEqual([pid]);
    });

    test.each<[string, RegExp, (text: string, isMain: boolean) => string]>([
      [
        "throws as it is loaded",
        /ended with 1.*broken on purpose/,
        (text, isMain) => (isMain ? `throw new Error("broken on purpose");${text}` : text),
      ],
      ["shows no certificate", /ended with 1/, (text) => text.replaceAll('"identity.json"', '"elsewhere.json"')],
      ["ends when it is in charge", /ended with 1/, (text) => text.replaceAll('op: "settled"', 'op: "unheard-of"')],
      [
        "does not settle",
        /did not take over in time/,
        (text) => text.replaceAll("await old.settle()", "await new Promise(() => undefined)"),
      ],
    ])("stays in charge when the new agent %s", async (_how, reason, edit) => {
      const [pid] = agents();
      const runsBefore = runs();
      const code = codeOf?.("3.0.0", edit) as AgentCode;
      // The upgrade fails with the reason, unless the machine is so busy that the new agent's second passes first.
      let failure: TaskResult["failure"];
      do failure = (await upgrade(code)).failure;
      while (!reason.test(failure?.message ?? "") && failure?.message.includes("did not take over in time"));
      expect(failure?.message).toMatch(reason);
      expect(agents()).toEqual([pid]);
      expect(postmaster()).toEqual(engine);
      // The old agent runs tasks, and its journal has all of them.
      await waitUntil("it is connected", () => machine.controller.openSessions > 0);
      expect((await machine.converge()).failure).toBeUndefined();
      expect(runs()).toBe(runsBefore);
      expect(written.failed).toBe(0);
    });

    test("stays in charge while no controller responds to the new agent", async () => {
      const code = codeOf?.("3.0.1") as AgentCode;
      const { controller } = machine;
      const [pid] = agents();
      const upgrading = upgraded(code);
      await waitUntil("the next one is there", () => agents().some((each) => each !== pid), { everyMs: 5 });
      controller.closesStreams = true;
      controller.cut();
      await waitUntil("it has tried more often than a refusal would take", () => controller.closedProbes > 5);
      controller.closesStreams = false;
      await upgrading;
      expect(runs()).toBe(code.digest);
      expect(postmaster()).toEqual(engine);
      expect(written.failed).toBe(0);
    });

    test("is not tried while a query uses the memory of a second agent", async ({ skip }) => {
      skip(machine.unlimited !== undefined, machine.unlimited);
      const [pid] = agents();
      // One session uses at most half of the machine's memory.
      const hungry = await Promise.all(
        [1, 2].map(() => connectPostgresql(machine.endpoint, { user: "app_user", password })),
      );
      // Sorts in memory, retained as long as their cursors; 45 MiB remain free.
      const group = createControlGroup(`/proc/${machine.keeperPid()}/root/sys/fs/cgroup`);
      const [limit = 0, needed = 0] = await Promise.all([group.memoryLimitBytes(), group.memoryNeededBytes()]);
      const megabytes = Math.round((limit - needed - (45 << 20)) / 1_000_000 / hungry.length);
      for (const session of hungry) {
        await session.query("SET work_mem = '1GB'");
        await session.query("BEGIN");
        await session.query(
          `DECLARE held CURSOR FOR SELECT repeat('x', 1000000) || n FROM generate_series(1, ${megabytes}) AS n ORDER BY 1`,
        );
        await session.query("FETCH 1 FROM held");
      }
      const code = codeOf?.("3.1.0") as AgentCode;
      const { failure } = await upgrade(code, { readyWithinMs: 500 });
      expect(failure).toMatchObject({ code: "no_room", retryable: true });
      expect(failure?.message).toMatch(/needs \d+ MiB of memory, and the machine has \d+ MiB free/);
      expect(agents()).toEqual([pid]);
      expect(postmaster()).toEqual(engine);

      // The new agent waits until the query ends.
      const waiting = upgraded(code);
      for (const session of hungry) {
        await session.query("ROLLBACK");
        await session.end();
      }
      await waiting;
      expect(runs()).toBe(code.digest);
      expect(written.failed).toBe(0);
    });

    test("retains the previous release until the new agent has started", async () => {
      const codes = ["3.2.0", "3.3.0"].map((release) => codeOf?.(release) as AgentCode);
      for (const code of codes) await upgraded(code);
      // The file of the new agent was changed, and then the old agent ends.
      const wrong = codeOf?.("3.4.0") as AgentCode;
      expect((await upgrade(wrong, { sha256: "0".repeat(64) })).failure).toMatchObject({ code: "payload_corrupt" });
      await waitUntil("one agent is there", () => agents().length === 1);
      const hellos = machine.controller.hellos.length;
      for (const pid of agents()) process.kill(pid, "SIGKILL");
      await waitUntil("an agent is there again", () => machine.controller.hellos.length > hellos);
      expect(codes.map(({ digest }) => digest)).toContain(runs());
      expect(postmaster()).toEqual(engine);
      expect(written.failed).toBe(0);
    });

    test("retains only the running release and the next one on disk", async () => {
      await upgraded(codeOf?.("4.0.0") as AgentCode);
      await upgraded(codeOf?.("5.0.0") as AgentCode);
      expect(received().length).toBeLessThanOrEqual(2);
      await waitUntil("one agent is there", () => agents().length === 1);
      const { rows } = await writer.query("SELECT count(*)::int AS n FROM written");
      expect(rows[0].n).toBe(written.rows);
      expect(written.failed).toBe(0);
      expect(postmaster()).toEqual(engine);
    });
  },
);
