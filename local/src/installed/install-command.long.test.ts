import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasSystemd, startSystemdMachine, type SystemdMachine } from "@holdfast/testing/machines/systemd-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const sources = join(import.meta.dirname, "..");

/** A supervisor with one process as its machine, which ends only when the unit stops. */
const supervisor = `
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { recordServing } from "${sources}/serving-record.ts";
const data = process.env.HOLDFAST_DATA;
mkdirSync(join(data, "run"), { recursive: true });
writeFileSync(join(data, "environment"), JSON.stringify(process.env));
const file = join(data, "machine.pid");
if (!existsSync(file)) {
  const machine = spawn("sleep", ["infinity"], { detached: true, stdio: "ignore" });
  machine.unref();
  writeFileSync(file, String(machine.pid));
}
const endServing = recordServing(join(data, "run"), join(import.meta.dirname, "..", ".."));
setInterval(() => undefined, 60_000);
process.on("SIGUSR2", () => { endServing(); process.exit(0); });
process.on("SIGTERM", () => { process.kill(Number(readFileSync(file, "utf8"))); process.exit(0); });
`;

/** The command in a process of the machine, for the code of another checkout. */
const runner = `
import { hostDeps } from "${sources}/host-deps.ts";
import { runInstallCommand } from "${sources}/installed/install-command.ts";
import { UserError } from "${sources}/user-error.ts";
const [checkout, ...args] = process.argv.slice(2);
try {
  await runInstallCommand(args, { ...hostDeps(), checkout });
} catch (error) {
  console.error(error instanceof UserError ? error.message : error);
  process.exitCode = 1;
}
`;

describe.skipIf(!hasSystemd)("install, upgrade and uninstall under systemd", { timeout: 180_000 }, () => {
  let machine: SystemdMachine;
  let directory: string;
  let data: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-systemd-"));
    data = join(directory, "data");
    writeFileSync(join(directory, "run.mjs"), runner);
    machine = await startSystemdMachine(directory, {});
  }, 60_000);
  afterAll(async () => {
    await machine?.remove();
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);

  function checkoutOf(version: string, main = supervisor): string {
    const checkout = join(directory, `checkout-${version}`);
    for (const folder of ["bin", "local/src"]) mkdirSync(join(checkout, folder), { recursive: true });
    writeFileSync(join(checkout, "package.json"), JSON.stringify({ version, type: "module" }));
    writeFileSync(join(checkout, "bin", "set-up.js"), "export const setUp = async () => ({ node: process.execPath });");
    writeFileSync(
      join(checkout, "bin", "holdfast.js"),
      "import { realpathSync } from 'node:fs'; const data = realpathSync(import.meta.dirname + '/../.holdfast'); console.log(process.argv.slice(2).join(' '), 'in', data);",
    );
    writeFileSync(join(checkout, "local", "src", "main.ts"), main);
    return checkout;
  }

  const run = (checkout: string, ...args: readonly string[]) =>
    machine.run(process.execPath, join(directory, "run.mjs"), checkout, ...args);
  const environment = () =>
    JSON.parse(readFileSync(join(data, "environment"), "utf8")) as Readonly<Record<string, string>>;
  const property = async (name: string) =>
    (await machine.run("systemctl", "show", `--property=${name}`, "--value", "holdfast.service")).trim();
  /** The state of the machine's process; fails if it has ended. */
  const machineProcess = () =>
    machine.run("ps", "-o", "pid=,lstart=,args=", "-p", readFileSync(join(data, "machine.pid"), "utf8"));

  it("installs, with its flags as settings, and starts at each boot", async () => {
    const printed = await run(checkoutOf("1.0.0"), "install", "--data", data, "--domain", "svc.example.com");
    expect(printed).toMatch(/release 1\.0\.0-[0-9a-f]{12} runs, now and after each boot/);
    expect(await property("UnitFileState")).toBe("enabled");
    expect(environment()).toMatchObject({ HOLDFAST_DATA: data, HOLDFAST_DOMAIN: "svc.example.com" });
    expect(await machine.run("holdfast", "services", "list")).toBe(`services list in ${data}\n`);
  });

  it("changes one setting, retains the others, and the machine continues", async () => {
    const before = await machineProcess();
    await run(checkoutOf("1.0.0"), "install", "--api-port", "9443");
    expect(environment()).toMatchObject({ HOLDFAST_API_PORT: "9443", HOLDFAST_DOMAIN: "svc.example.com" });
    expect(await machineProcess()).toBe(before);
  });

  it("refuses flags that the program refuses", async () => {
    await expect(run(checkoutOf("1.0.0"), "install", "--api-port", "x")).rejects.toThrow("--api-port: x is not a port");
    await expect(run(checkoutOf("1.0.0"), "upgrade", "--fast")).rejects.toThrow("--fast");
  });

  it("restarts a killed supervisor, whose machine continues", async () => {
    const [before, pid] = [await machineProcess(), await property("MainPID")];
    await machine.run("systemctl", "kill", "--kill-who=main", "--signal=SIGKILL", "holdfast.service");
    await waitUntil("another supervisor runs", async () => !["0", pid].includes(await property("MainPID")));
    expect(await machineProcess()).toBe(before);
  });

  it("upgrades while the machine continues", async () => {
    const before = await machineProcess();
    const printed = await run(checkoutOf("1.0.0"), "upgrade", checkoutOf("1.1.0"));
    expect(printed).toContain("taking a snapshot of the control plane");
    expect(printed).toMatch(/release 1\.1\.0-[0-9a-f]{12} runs/);
    expect(await machineProcess()).toBe(before);
    expect(readdirSync(join(directory, "opt", "holdfast", "releases"))).toHaveLength(2);
  });

  it("returns to the former release when the new one ends at its start", async () => {
    const before = await machineProcess();
    const broken = checkoutOf("1.2.0", "throw new Error('broken release');");
    await expect(run(broken, "upgrade")).rejects.toThrow(
      /broken release[\s\S]*release 1\.2\.0-\w+ does not serve, so release 1\.1\.0-\w+ runs again/,
    );
    expect(await machineProcess()).toBe(before);
  });

  it("uninstalls, stops the machine, and leaves the data", async () => {
    expect(await run(checkoutOf("1.1.0"), "uninstall")).toContain(`the data remains in ${data}`);
    await expect(machineProcess()).rejects.toThrow();
    await expect(machine.run("systemctl", "cat", "holdfast.service")).rejects.toThrow("No files found");
    expect(existsSync(join(directory, "opt", "holdfast"))).toBe(false);
    expect(existsSync(join(data, "environment"))).toBe(true);
    await expect(run(checkoutOf("1.1.0"), "uninstall")).rejects.toThrow("not installed on this machine");
  });
});
