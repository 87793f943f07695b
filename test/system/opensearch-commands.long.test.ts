import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { pythonOpensearch } from "@holdfast/testing/engines/opensearch-programs.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { pythonEnvironment } from "@holdfast/testing/servers/python-environment.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandsOfPage, createPageShell, type PageShell } from "./commands/page-shell.ts";

const longMs = 900_000;
const skip = await requireRecipes(import.meta.filename, "opensearch");

// Only root gives a client other names than those of the host.
describe.skipIf(skip !== undefined || !asRoot)("the commands of a user of OpenSearch", { timeout: longMs }, () => {
  let platform: Platform;
  let shell: PageShell;

  beforeAll(async () => {
    platform = await startPlatform();
    shell = createPageShell(platform);
  }, longMs);
  afterAll(async () => {
    shell?.remove();
    await platform?.remove();
  }, longMs);

  it("do on a real service what the page shows", async () => {
    const { run, json } = shell;
    const commands = commandsOfPage("opensearch");
    expect(commands.length).toBe(11);
    const printed = new Map<string, string>();
    for (const command of commands) {
      if (command.startsWith("holdfast indices list"))
        await run(
          `holdfast services connect logs -- '/orders/_doc/7?refresh=true' --request PUT --data '{"number": 7}'`,
        );
      const [backup] = command.includes(" ID ") ? await json<{ id: string }[]>("holdfast backups list logs") : [];
      printed.set(command, await run(command.replace(" ID ", ` ${backup?.id} `).replace(/ > .*/, "")));
    }
    const outputOf = (start: string) => printed.get(commands.find((each) => each.startsWith(start)) ?? "");
    expect(printed.get("holdfast services connect logs")).toContain('"number" : "2.19.4"');
    expect(outputOf("holdfast services connect logs --")).toContain("node-1");
    expect(outputOf("holdfast indices list")).toMatch(/orders +yellow|orders +green/);
    expect(outputOf("holdfast metrics")).toContain("opensearch_cluster_status");
    const read = await run("holdfast services connect before -- --request-target /orders/_doc/7");
    expect(JSON.parse(read)).toMatchObject({ _source: { number: 7 } });
    await run("holdfast indices delete before orders --yes");
    expect(await json<unknown[]>("holdfast indices list before")).toEqual([]);
  });

  it("connect with programs of their own before the name resolves", async () => {
    const directory = mkdtempSync(join(tmpdir(), "holdfast-opensearch-"));
    const commandLine = createCommandLine({ HOLDFAST_DATA: platform.directory });
    try {
      const print = async (...args: string[]) =>
        (await commandLine.run(["services", "connect", "logs", ...args])).stdout;
      expect(JSON.parse(await print("--", "/"))).toMatchObject({ version: { number: "2.19.4" } });
      const python = join(await pythonEnvironment(pythonOpensearch), "python3");
      symlinkSync(join(import.meta.dirname, "..", "node_modules"), join(directory, "node_modules"));
      for (const [language, program, file] of [
        ["python", python, "connect.py"],
        ["node", process.execPath, "connect.mjs"],
      ] as const) {
        writeFileSync(join(directory, file), await print("--snippet", language));
        const { stdout } = await promisify(execFile)(program, [join(directory, file)]);
        expect(stdout).toBe("2.19.4\n");
      }
      const { stdout } = await promisify(execFile)("sh", ["-c", await print("--snippet", "curl")]);
      expect(JSON.parse(stdout)).toMatchObject({ version: { number: "2.19.4" } });
    } finally {
      commandLine.remove();
      rmSync(directory, { recursive: true });
    }
  });
});
