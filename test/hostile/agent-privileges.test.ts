import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "@holdfast/testing/wait-until.ts";

/** A user that the host does not have: the keeper refers to it by number. */
const agentUid = 61_201;
const engineUid = 61_202;
const checkout = join(import.meta.dirname, "..", "..");
const isRoot = process.getuid?.() === 0;

describe.skipIf(!isRoot)("a machine whose agent's user an attacker controls", () => {
  let base: string;
  let keeper: ChildProcess;
  let responses: Record<string, string>;
  /** Environment of a program between the keeper and the user that it switches to. */
  let outer = "";

  function start(): ChildProcess {
    return spawn(join(base, "node"), [join(checkout, "agent", "keeper", "main.ts")], {
      env: {
        PATH: process.env["PATH"],
        HOLDFAST_STATE_DIR: join(base, "state"),
        HOLDFAST_RUN_DIR: join(base, "run"),
        HOLDFAST_DATA_DIR: join(base, "data"),
        HOLDFAST_MACHINE_UID: String(engineUid),
        HOLDFAST_AGENT_UID: String(agentUid),
        HOLDFAST_AGENT_MAIN: join(base, "hostile-agent.mjs"),
        HOLDFAST_HOSTILE_DIR: base,
      },
      stdio: "ignore",
    });
  }

  beforeAll(async () => {
    base = mkdtempSync(join(tmpdir(), "hostile-"));
    chmodSync(base, 0o777);
    const target = join(base, "target");
    mkdirSync(target, { mode: 0o755 });
    writeFileSync(join(target, "file"), "root's own", { mode: 0o644 });
    writeFileSync(join(target, "open"), "everybody's");
    chmodSync(join(target, "open"), 0o666);
    const program = readFileSync(join(checkout, "testing", "src", "machines", "hostile-agent.mjs"));
    writeFileSync(join(base, "hostile-agent.mjs"), program, { mode: 0o644 });
    // The host's own program may be in a directory that other users cannot read.
    copyFileSync(process.execPath, join(base, "node"), constants.COPYFILE_FICLONE);
    keeper = start();
    await until(() => existsSync(join(base, "pause")) || keeper.exitCode !== null);
    outer = environmentsOfRoot(keeper.pid as number);
    rmSync(join(base, "pause"));
    await until(() => existsSync(join(base, "answers.json")) || keeper.exitCode !== null);
    responses = JSON.parse(readFileSync(join(base, "answers.json"), "utf8")) as Record<string, string>;
  });

  afterAll(async () => {
    keeper.kill("SIGKILL");
    await until(() => keeper.exitCode !== null || keeper.signalCode !== null);
    rmSync(base, { recursive: true, force: true });
  });

  test("has no program on its PATH that it could replace and root would run", () => {
    expect(responses["PATH"]).toBe("started");
    expect(readdirSync(base).filter((name) => name.startsWith("ran-as-"))).not.toContain("ran-as-0");
  });

  test("has no environment variable that a program of root reads", () => {
    expect(responses["LD_PRELOAD"]).toBe("started");
    expect(readFileSync(join(base, "inner"), "utf8")).toContain("LD_PRELOAD=");
    expect(outer).toContain("PATH=");
    expect(outer.split("\0").filter((each) => /^(LD_PRELOAD|ENV)=/.test(each))).toEqual([]);
  });

  test("has no foreign file created or written by any path or link", () => {
    for (const attempt of Object.keys(responses).filter((each) => each.startsWith("log")))
      expect(responses[attempt], attempt).not.toBe("started");
    const target = join(base, "target");
    expect(readdirSync(target).sort()).toEqual(["file", "open"]);
    expect(readFileSync(join(target, "file"), "utf8")).toBe("root's own");
    expect(readFileSync(join(target, "open"), "utf8")).toBe("everybody's");
    for (const path of [target, join(target, "file"), join(target, "open")]) expect(statSync(path).uid, path).toBe(0);
  });

  test("has no component's name used as a path, and a limited number of names", () => {
    for (const attempt of Object.keys(responses).filter((each) => each.startsWith("name ")))
      expect(responses[attempt], attempt).toBe("name is not a component name");
    expect(responses["too many names"]).toBe("there are too many components");
    expect(responses["no command"]).toBe("argv is not a command line");
    expect(responses["signal"]).toBe("signal is not a signal");
    expect(responses["variable"]).toBe("env is not an environment");
  });

  test("has no capability, and no way to gain one", () => {
    const caps = [...(responses["status"] ?? "").matchAll(/^(Cap\w+):\s+(\w+)$/gm)].map(([, name, bits]) => [
      name,
      bits,
    ]);
    expect(Object.fromEntries(caps)).toEqual({
      CapInh: "0000000000000000",
      CapPrm: "0000000000000000",
      CapEff: "0000000000000000",
      CapBnd: "0000000000000000",
      CapAmb: "0000000000000000",
    });
  });

  test("gains nothing from the keeper's next start by links", async () => {
    keeper.kill("SIGTERM");
    await until(() => keeper.exitCode !== null || keeper.signalCode !== null);
    keeper = start();
    await until(() => keeper.exitCode !== null);
    expect(keeper.exitCode).not.toBe(0);
    expect(statSync(join(base, "target"))).toMatchObject({ uid: 0, gid: 0 });
    expect(statSync(join(base, "target")).mode & 0o777).toBe(0o755);
  });
});

/** Environments of all of root's programs below a process. */
function environmentsOfRoot(pid: number): string {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter(Boolean)
    .map(Number);
  return children
    .filter((child) => statSync(`/proc/${child}`).uid === 0)
    .map((child) => readFileSync(`/proc/${child}/environ`, "latin1"))
    .join("\0");
}
