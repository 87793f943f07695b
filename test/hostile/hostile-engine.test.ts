import { copyFileSync, existsSync, mkdirSync, readFileSync, chmodSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "@holdfast/testing/machines/agent-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface Report {
  /** Text that the agent sent to the attacker at the engine's socket. */
  readonly received: string;
  /** Texts by path, of the agent's and the keeper's directories. */
  readonly readable: Readonly<Record<string, string>>;
  readonly writable: readonly string[];
  readonly dialed: readonly (readonly [path: string, outcome: string])[];
  readonly others: readonly {
    readonly pid: number;
    readonly environment: string | number;
    readonly memory: string | number;
    readonly files: string | number;
    readonly signal: string;
  }[];
}

const skipped = whyNoAgentMachine("valkey", "8.1");

describe.skipIf(skipped !== undefined)(
  `a machine whose engine's user an attacker controls${skipped === undefined ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let machine: AgentMachine;
    let report: Report;
    let identity: string;
    const modes = () =>
      ["identity.json", "enrollment.json"].map((name) => statSync(join(machine.directory, "state", name)).mode & 0o777);

    beforeAll(async () => {
      machine = await startAgentMachine({ engine: "valkey", version: "8.1", sampleIntervalMs: 500, spec: {} });
      expect((await machine.converge()).failure).toBeUndefined();
      const state = join(machine.directory, "state");
      identity = readFileSync(join(state, "identity.json"), "utf8");
      const open = join(machine.directory, "open");
      mkdirSync(open);
      chmodSync(open, 0o777);
      // The host's own program may be in a directory that other users cannot read.
      const program = join(open, "hostile-engine.mjs");
      copyFileSync(join(import.meta.dirname, "../../testing/src/machines/hostile-engine.mjs"), program);
      const node = join(open, "node");
      copyFileSync(process.execPath, node);
      const [reportFile, stop] = [join(open, "report.json"), join(open, "stop")];
      const directories = [state, join(machine.directory, "run"), join(machine.directory, "data")];
      const ended = machine.asEngine([node, program, ...directories, reportFile, stop]);
      const unhealthy = () =>
        machine.controller.observations.at(-1)?.checks.some(({ status }) => status === "unhealthy");
      await waitUntil("the agent finds that this is not its engine", () => unhealthy() === true, {
        describe: machine.log,
      });
      // The agent signs in again, and sets the modes of its files.
      await machine.converge();
      writeFileSync(stop, "");
      const printed = await ended;
      expect(existsSync(reportFile), printed).toBe(true);
      report = JSON.parse(readFileSync(reportFile, "utf8")) as Report;
    });
    afterAll(() => machine?.remove());
    beforeEach(() => onTestFailed(() => console.log(machine.log())));

    test("learns nothing of the agent's own by links in place of its files", () => {
      expect(identity).toContain("PRIVATE KEY");
      const key = /-----BEGIN[^"]{80}/.exec(identity)?.[0] ?? "none";
      expect(report.received.includes(key) || report.received.includes("PRIVATE KEY")).toBe(false);
      expect(modes()).toEqual([0o600, 0o600]);
      expect(readFileSync(join(machine.directory, "state", "identity.json"), "utf8")).toBe(identity);
    });

    test("reads only files that it may read, and writes none", () => {
      expect(report.writable).toEqual([]);
      const state = join(machine.directory, "state");
      for (const [path, text] of Object.entries(report.readable)) {
        expect(
          path.startsWith(join(state, "instance", "config")) || path.startsWith(join(state, "instance", "tls")),
        ).toBe(true);
        expect(text === identity, path).toBe(false);
      }
    });

    test("connects to no socket of the agent or the keeper", () => {
      expect(report.dialed.length).toBeGreaterThan(0);
      for (const [path, outcome] of report.dialed) expect(["EACCES", "ENOENT"], path).toContain(outcome);
    });

    test("inspects no process of others, and signals none", () => {
      expect(report.others.map(({ pid }) => pid)).toContain(machine.keeperPid());
      for (const { environment, memory, files, signal } of report.others)
        expect([environment, memory, files, signal]).toEqual(["EACCES", "EACCES", "EACCES", "EPERM"]);
    });
  },
);
