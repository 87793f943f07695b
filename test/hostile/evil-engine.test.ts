import { copyFileSync, existsSync, mkdirSync, readFileSync, chmodSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import { type AgentMachine, startAgentMachine, whyNoAgentMachine } from "../support/machines/agent-machine.ts";
import { waitUntil } from "../support/wait-until.ts";

interface Report {
  /** What the agent said to who took the engine's socket. */
  readonly heard: string;
  /** Texts by path, of the agent's and the keeper's directories. */
  readonly readable: Readonly<Record<string, string>>;
  readonly writable: readonly string[];
  readonly dialled: readonly (readonly [path: string, outcome: string])[];
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
  `a machine's engine that somebody else has taken${skipped === undefined ? "" : ` (skipped: ${skipped})`}`,
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
      // The host's own may be where no other user can read.
      const program = join(open, "evil-engine.mjs");
      copyFileSync(join(import.meta.dirname, "../support/machines/evil-engine.mjs"), program);
      const node = join(open, "node");
      copyFileSync(process.execPath, node);
      const [reportFile, stop] = [join(open, "report.json"), join(open, "stop")];
      const places = [state, join(machine.directory, "run"), join(machine.directory, "data")];
      const ended = machine.asEngine([node, program, ...places, reportFile, stop]);
      const unwell = () => machine.controller.observations.at(-1)?.checks.some(({ status }) => status === "unhealthy");
      await waitUntil("the agent finds that this is not its engine", () => unwell() === true, {
        describe: machine.log,
      });
      // It signs in again, and gives its files their modes.
      await machine.converge();
      writeFileSync(stop, "");
      const said = await ended;
      expect(existsSync(reportFile), said).toBe(true);
      report = JSON.parse(readFileSync(reportFile, "utf8")) as Report;
    });
    afterAll(() => machine?.remove());
    beforeEach(() => onTestFailed(() => console.log(machine.log())));

    test("is told nothing of the agent's own, by whatever it lays in the place of its files", () => {
      expect(identity).toContain("PRIVATE KEY");
      const key = /-----BEGIN[^"]{80}/.exec(identity)?.[0] ?? "none";
      expect(report.heard.includes(key) || report.heard.includes("PRIVATE KEY")).toBe(false);
      expect(modes()).toEqual([0o600, 0o600]);
      expect(readFileSync(join(machine.directory, "state", "identity.json"), "utf8")).toBe(identity);
    });

    test("reads nothing but what is given to it, and writes nothing", () => {
      expect(report.writable).toEqual([]);
      const state = join(machine.directory, "state");
      for (const [path, text] of Object.entries(report.readable)) {
        expect(
          path.startsWith(join(state, "instance", "config")) || path.startsWith(join(state, "instance", "tls")),
        ).toBe(true);
        expect(text === identity, path).toBe(false);
      }
    });

    test("reaches no socket of the agent's or the keeper's", () => {
      expect(report.dialled.length).toBeGreaterThan(0);
      for (const [path, outcome] of report.dialled) expect(["EACCES", "ENOENT"], path).toContain(outcome);
    });

    test("sees into no process of others, and signals none", () => {
      expect(report.others.map(({ pid }) => pid)).toContain(machine.keeperPid());
      for (const { environment, memory, files, signal } of report.others)
        expect([environment, memory, files, signal]).toEqual(["EACCES", "EACCES", "EACCES", "EPERM"]);
    });
  },
);
