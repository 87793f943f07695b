import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import { hasSystemd, startSystemdMachine, type SystemdMachine } from "@holdfast/testing/machines/systemd-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const checkout = join(import.meta.dirname, "..", "..");

/** A copy of the code with another version, and a change of one file. */
function checkoutOf(directory: string, version: string, file?: string, content?: string): string {
  const copy = join(directory, `checkout-${version}`);
  const skipped = new Set(["node_modules", ".git", ".holdfast"]);
  cpSync(checkout, copy, { recursive: true, filter: (path) => !skipped.has(path.split("/").at(-1) ?? "") });
  const manifest = JSON.parse(readFileSync(join(copy, "package.json"), "utf8")) as object;
  writeFileSync(join(copy, "package.json"), JSON.stringify({ ...manifest, version }));
  if (file !== undefined) writeFileSync(join(copy, file), content ?? "");
  return copy;
}

describe.skipIf(!hasSystemd)("an installation as a service of systemd", { timeout: 600_000 }, () => {
  let machine: SystemdMachine;
  let directory: string;
  let data: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-installed-"));
    data = join(directory, "data");
    machine = await startSystemdMachine(directory, { HOLDFAST_CACHE: cacheDirectory(process.env) });
  }, 60_000);
  afterAll(async () => {
    await machine?.remove();
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);

  const holdfast = (...args: readonly string[]) => machine.run("holdfast", ...args);
  const property = async (name: string) =>
    (await machine.run("systemctl", "show", `--property=${name}`, "--value", "holdfast.service")).trim();
  /** The run of the engine, which a restart changes. */
  const engineRun = async () =>
    /run_id:(\w+)/.exec(await holdfast("services", "connect", "first", "--", "INFO", "server"))?.[1];

  it("installs, and starts at each boot", async () => {
    const printed = await machine.run(
      process.execPath,
      join(checkout, "bin", "holdfast.js"),
      "install",
      "--data",
      data,
    );
    expect(printed).toMatch(/release 0\.1\.0-[0-9a-f]{12} runs, now and after each boot/);
    expect((await machine.run("systemctl", "is-enabled", "holdfast.service")).trim()).toBe("enabled");
    expect(await holdfast("services", "create", "first", "--type", "valkey", "--wait")).toContain("Running");
    expect(await engineRun()).toMatch(/^\w{40}$/);
  });

  it("restarts a killed supervisor, whose machines continue", async () => {
    const [run, pid] = [await engineRun(), await property("MainPID")];
    await machine.run("systemctl", "kill", "--kill-who=main", "--signal=SIGKILL", "holdfast.service");
    await waitUntil("another supervisor runs", async () => !["0", pid].includes(await property("MainPID")));
    await waitUntil("the API responds", async () => await holdfast("services", "list"));
    await waitUntil("the engine is reachable", async () => (await engineRun()) === run);
  });

  it("refuses settings that the program refuses, and changes none", async () => {
    await expect(holdfast("install", "--api-port", "x")).rejects.toThrow("--api-port: x is not a port");
    await expect(holdfast("install", "--nothing", "x")).rejects.toThrow("--nothing");
  });

  it("upgrades while machines continue, and retains the former release", async () => {
    const run = await engineRun();
    const printed = await holdfast("upgrade", checkoutOf(directory, "0.1.1"));
    expect(printed).toContain("taking a snapshot of the control plane");
    expect(printed).toMatch(/release 0\.1\.1-[0-9a-f]{12} runs/);
    await waitUntil("the engine is reachable", async () => (await engineRun()) === run);
    expect(readdirSync(join(directory, "opt", "holdfast", "releases"))).toHaveLength(2);
  });

  it("returns to the former release if the new one does not start", async () => {
    const run = await engineRun();
    const broken = checkoutOf(directory, "0.1.2", "local/src/up.ts", "throw new Error('broken release');\n");
    await expect(holdfast("upgrade", broken)).rejects.toThrow(
      /broken release[\s\S]*release 0\.1\.2-\w+ does not serve, so release 0\.1\.1-\w+ runs again/,
    );
    await waitUntil("the engine is reachable", async () => (await engineRun()) === run);
  });

  it("uninstalls, and a new installation continues with the data", async () => {
    expect(await holdfast("uninstall")).toContain(`the data remains in ${data}`);
    await expect(machine.run("systemctl", "cat", "holdfast.service")).rejects.toThrow("No files found");
    expect(existsSync(join(directory, "opt", "holdfast"))).toBe(false);
    await machine.run(process.execPath, join(checkout, "bin", "holdfast.js"), "install", "--data", data);
    expect(await holdfast("services", "wait", "first")).toContain("Running");
    await holdfast("uninstall", "--remove-data");
    expect(existsSync(data)).toBe(false);
  });
});
