import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandsOfPage, createPageShell, type PageShell } from "./commands/page-shell.ts";

interface NodeJson {
  readonly id: string;
  readonly role: string;
}

interface BackupsJson {
  readonly restorable: { readonly to: string } | null;
}

const longMs = 900_000;
const skip = await requireRecipes(import.meta.filename, "mysql");
const momentOfPage = /--to \S+/;

// Only root gives a client other names than those of the host.
describe.skipIf(skip !== undefined || !asRoot)("the commands of a user of MySQL", { timeout: longMs }, () => {
  let platform: Platform;
  let shell: PageShell;
  /** Id of the replica that the page promotes. */
  let promoted = "";

  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_IDLE_LOG_AFTER_S: "2" } });
    shell = createPageShell(platform);
  }, longMs);
  afterAll(async () => {
    shell?.remove();
    await platform?.remove();
  }, longMs);

  const run = (line: string) => shell.run(line);
  const sql = (service: string, text: string) => run(`holdfast services connect ${service} -- -Ne "${text}"`);

  it("do on a real service what the page shows", async () => {
    const commands = commandsOfPage("mysql");
    expect(commands.length).toBeGreaterThanOrEqual(20);
    const printed = new Map<string, string>();
    for (const command of commands) printed.set(command, await run(await prepared(command)));
    const outputOf = (start: string) => printed.get(commands.find((each) => each.startsWith(start)) ?? "");
    expect(outputOf("holdfast services logs")).toContain("SELECT 'a slow statement'");
    expect(outputOf("holdfast metrics")).toContain("mysql_queries_per_second");
    expect(outputOf("holdfast query ")).toMatch(/COUNT\(\*\)\s+0\s/);
    expect(outputOf("holdfast queries top")).toContain("`items`");
    expect(await sql("before", "SELECT id FROM items")).toBe("1\n");
    const members = await shell.json<NodeJson[]>("holdfast nodes list shop");
    expect(members.map(({ role }) => role).sort()).toEqual(["primary", "replica"]);
    expect(members.find(({ id }) => id === promoted)?.role).toBe("primary");
    expect(await sql("copy", "SELECT COUNT(*) FROM items")).toBe("0\n");
    expect(await shell.json("holdfast services get copy")).toMatchObject({
      status: "Running",
      plan_name: "tier-2",
      storage_size_gb: 11,
    });
  });

  /** The command as a user completes it, after what it is about has happened. */
  async function prepared(command: string): Promise<string> {
    if (command === "holdfast services connect shop") return `echo "SELECT 1" | ${command}`;
    if (command.startsWith("holdfast databases create")) await sql("shop", "CREATE TABLE items (id INT PRIMARY KEY)");
    if (command.startsWith("holdfast services logs")) await logSlowStatement();
    if (command.includes(" NODE ")) {
      const nodes = await shell.json<NodeJson[]>("holdfast nodes list shop");
      promoted = nodes.find(({ role }) => role === "replica")?.id ?? "";
      return command.replace(" NODE ", ` ${promoted} `);
    }
    if (!momentOfPage.test(command)) return command;
    await sql("shop", "INSERT INTO items VALUES (1)");
    const moment = new Date(Date.now() + 1).toISOString();
    await waitUntil("the moment is over", () => new Date().toISOString() > moment);
    await sql("shop", "DELETE FROM items");
    await waitUntil("the log of the moment is archived", async () => {
      const { restorable } = await shell.json<BackupsJson>("holdfast backups restorable shop");
      return (restorable?.to ?? "") >= moment;
    });
    return command.replace(momentOfPage, `--to ${moment}`);
  }

  async function logSlowStatement(): Promise<void> {
    await sql("shop", "SET long_query_time = 0; SELECT 'a slow statement'");
    await waitUntil("the statement is logged", async () =>
      (await run("holdfast services logs shop --component slow")).includes("a slow statement"),
    );
  }
});
