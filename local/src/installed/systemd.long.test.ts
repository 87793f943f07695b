import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasSystemd, startSystemdMachine, type SystemdMachine } from "@holdfast/testing/machines/systemd-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const program = join(import.meta.dirname, "systemd.ts");

describe.skipIf(!hasSystemd)("systemd of a machine", () => {
  let machine: SystemdMachine;
  let directory: string;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-systemd-"));
    machine = await startSystemdMachine(directory, {});
  });
  afterAll(async () => {
    await machine?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Lines of the log of a unit, as an installation on that machine reads them. */
  async function log(unit: string, lines: number): Promise<string[]> {
    const script = `import(${JSON.stringify(program)}).then((each) => each.openSystemd().log("${unit}", ${lines})).then(console.log)`;
    return (await machine.run(process.execPath, "--eval", script)).trim().split("\n");
  }
  const start = (unit: string, properties: readonly string[], script: string) =>
    machine.run("systemd-run", `--unit=${unit}`, ...properties.map((each) => `--property=${each}`), "sh", "-c", script);

  it("has the reason why a process ended, however many processes of former starts continue", async () => {
    const restarts = ["Restart=always", "RestartSec=10ms", "StartLimitIntervalSec=0", "KillMode=process"];
    await start("ends.service", restarts, "setsid sleep 1000 & echo the reason; exit 3");
    await waitUntil("many processes continue", async () => {
      const text = await machine.run("systemctl", "show", "--property=NRestarts", "--value", "ends.service");
      return Number(text) >= 10;
    });
    await machine.run("systemctl", "stop", "ends.service");
    const lines = await log("ends.service", 4);
    expect(lines).toContain("the reason");
    expect(lines.filter((line) => line !== "the reason" && !line.includes("status=3/"))).toEqual([]);
  });

  it("has the reason why a process was not executed", async () => {
    await start("missing.service", ["WorkingDirectory=/missing"], "true");
    await waitUntil("systemd gave up", async () =>
      (await log("missing.service", 4)).some((line) => /CHDIR/.test(line)),
    );
    expect((await log("missing.service", 4)).join("\n")).toContain("No such file or directory");
  });
});
