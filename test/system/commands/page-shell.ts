import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { PageJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";

const execute = promisify(execFile);
const checkout = join(import.meta.dirname, "..", "..", "..");
const cache = join(homedir(), ".cache", "holdfast");

/** Commands of the first block of a page of docs/how-to, without their comments. */
export function commandsOfPage(name: string): string[] {
  const page = readFileSync(join(checkout, "docs", "how-to", `${name}.md`), "utf8");
  const [, block = ""] = /```\n(holdfast services create[\s\S]*?)```/.exec(page) ?? [];
  return block.split("\n").flatMap((line) => line.replace(/\s+#.*$/, "").trim() || []);
}

/** A user's shell, in which the names of all running services resolve. Only root can give a command other names. */
export interface PageShell {
  /** Runs a line of shell; resolves with what it printed. */
  run(line: string): Promise<string>;
  /** Runs one command with `--json`. */
  json<T>(line: string): Promise<T>;
  remove(): void;
}

export function createPageShell(platform: Platform): PageShell {
  const { home, remove } = createCommandLine({ HOLDFAST_DATA: platform.directory });
  const hosts = join(home, "hosts");

  async function run(line: string): Promise<string> {
    const { json } = await platform.rest.get<PageJson<"services", ServiceJson>>("/managed-services");
    const running = json.services.filter(({ status }) => status === "Running");
    const names = running.flatMap(({ hostname, nodes }) => [hostname, ...nodes.map((node) => node.hostname)]);
    const lines = await Promise.all(names.map(async (name) => `${await addressOf(platform, name)} ${name}\n`));
    writeFileSync(hosts, lines.join(""));
    const script = `mount --bind ${hosts} /etc/hosts && ${line.replaceAll("holdfast ", "./bin/holdfast.js ")}`;
    const { stdout } = await execute("unshare", ["--mount", "sh", "-ec", script], {
      cwd: checkout,
      // Images are found below the real home.
      env: { HOLDFAST_CACHE: cache, ...process.env, HOME: home, HOLDFAST_DATA: platform.directory },
    });
    return stdout;
  }
  return { run, json: async <T>(line: string) => JSON.parse(await run(`${line} --json`)) as T, remove };
}
