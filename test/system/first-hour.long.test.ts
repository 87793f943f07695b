import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CommandLine, createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";

const execute = promisify(execFile);
const checkout = join(import.meta.dirname, "..", "..");

/** Commands of the README's first database, without their comments. */
function commandsOfReadme(): string[] {
  const readme = readFileSync(join(checkout, "README.md"), "utf8");
  const [, block = ""] = /## A first database\n\n```\n([\s\S]*?)```/.exec(readme) ?? [];
  return block.split("\n").flatMap((line) => line.replace(/\s+#.*$/, "").trim() || []);
}

/** Commands that end only with their terminal, in a form that ends. */
const interactive: Readonly<Record<string, string>> = {
  "./bin/holdfast.js services connect first": `./bin/holdfast.js services connect first -- -c "SELECT 1"`,
  "./bin/holdfast.js events --follow": "./bin/holdfast.js events",
  'psql "$(./bin/holdfast.js services connect first --conninfo)"':
    'psql "$(./bin/holdfast.js services connect first --conninfo)" -c "SELECT 1"',
};

const hasPsql = await execute("psql", ["--version"]).then(
  () => true,
  () => false,
);

describe("the first hour of a user", { timeout: 300_000 }, () => {
  let platform: Platform;
  let shell: CommandLine;
  let root: string;

  beforeAll(async () => {
    platform = await startPlatform();
    shell = createCommandLine({ HOLDFAST_DATA: platform.directory });
    root = mkdtempSync(join(tmpdir(), "holdfast-first-hour-"));
    mkdirSync(join(root, "etc"));
    writeFileSync(join(root, "etc", "hosts"), "127.0.0.1 localhost\n");
    writeFileSync(join(root, "etc", "resolv.conf"), "nameserver 127.251.0.1\noptions timeout:1 attempts:1\n");
  }, 180_000);
  afterAll(async () => {
    shell?.remove();
    await platform?.remove();
    rmSync(root, { recursive: true, force: true });
  });

  /** A command of the checkout, in a mount namespace with the test's resolver. */
  async function run(line: string): Promise<string> {
    const binds = ["hosts", "resolv.conf"].map((file) => `mount --bind ${root}/etc/${file} /etc/${file}`);
    const script = asRoot ? [...binds, line].join(" && ") : line;
    const [command, ...args] = asRoot ? ["unshare", "--mount", "sh"] : ["sh"];
    const { stdout, stderr } = await execute(command, [...args, "-ec", script], {
      cwd: checkout,
      env: { ...process.env, HOME: shell.home, HOLDFAST_DATA: platform.directory },
    });
    return `${stdout}${stderr}`;
  }

  async function failure(line: string): Promise<string> {
    const { code, stderr } = await shell.runHere(line.split(" "));
    expect(code, line).not.toBe(0);
    return stderr;
  }

  it("runs the README's commands from top to bottom", async () => {
    const commands = commandsOfReadme();
    expect(commands[0]).toContain("services create first");
    expect(commands.length).toBeGreaterThanOrEqual(5);
    for (const command of commands) {
      if (command.startsWith("psql") && !hasPsql) continue;
      const output = await run(interactive[command] ?? command);
      expect(output, command).not.toBe("");
    }
  });

  it.skipIf(!asRoot)("resolves names after dns install, and not after uninstall", async () => {
    const { hostname } = JSON.parse(await run("./bin/holdfast.js services get first --json")) as { hostname: string };
    expect(await run("./bin/holdfast.js services connect first --conninfo")).toContain(
      `${hostname} does not resolve on this host yet; as root: ./bin/holdfast.js dns install`,
    );
    expect(await run("./bin/holdfast.js dns install")).toContain("resolve on this host, by resolv.conf");
    expect(await run("./bin/holdfast.js dns status")).toContain("by resolv.conf");
    expect(await run(`getent ahostsv4 ${hostname}`)).toContain(hostname);
    expect(await run("./bin/holdfast.js services connect first --conninfo")).not.toContain("does not resolve");
    expect(await run("./bin/holdfast.js dns uninstall")).toContain("removed from resolv.conf");
    await expect(run(`getent ahostsv4 ${hostname}`)).rejects.toThrow();
  });

  it("says what to do where an error is", async () => {
    expect(await failure("services create small --type postgres --storage-gb 0")).toContain(
      "storage_size_gb: must be greater than or equal to 1 and less than or equal to 16384",
    );
    expect(await failure("config set first shared_buffers=99GB")).toMatch(/shared_buffers: it is \d+MB at most/);
    expect(await failure("databases create first shop --owner nobody")).toContain(
      "owner: must be a user of the service: there is no user nobody",
    );
    expect(await failure("services config first")).toContain("unknown command 'services config'");
  });

  it("creates a database with an owner, and a fork with a replica", async () => {
    const jsonOf = async (line: string) => {
      const { code, stdout, stderr } = await shell.runHere([...line.split(" "), "--json"]);
      expect({ code, stderr: code === 0 ? "" : stderr }, line).toEqual({ code: 0, stderr: "" });
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    await jsonOf("users create first ann --role readwrite --wait");
    expect(await jsonOf("databases create first shop --owner ann --wait")).toMatchObject({ owner: "ann" });
    await jsonOf("services fork first first-copy --nodes 2 --wait");
    const { stdout } = await shell.runHere(["nodes", "status", "first-copy", "--json"]);
    const nodes = JSON.parse(stdout) as readonly { role: string }[];
    expect(nodes.map(({ role }) => role).toSorted()).toEqual(["primary", "replica"]);
  });
});
