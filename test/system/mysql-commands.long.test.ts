import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandsOfPage, createPageShell, type PageShell } from "./commands/page-shell.ts";

interface NodeStatusJson {
  readonly role: string;
}

interface BackupsJson {
  readonly restorable: { readonly to: string } | null;
}

const longMs = 600_000;
const skip = await requireRecipes(import.meta.filename, "mysql");
const momentOfPage = /--to \S+/;

// Only root gives a client other names than those of the host.
describe.skipIf(skip !== undefined || !asRoot)("the commands of a user of MySQL", { timeout: longMs }, () => {
  let platform: Platform;
  let shell: PageShell;

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
    expect(commands.length).toBeGreaterThanOrEqual(12);
    const printed = new Map<string, string>();
    for (const command of commands) printed.set(command, await run(await prepared(command)));
    const outputOf = (start: string) => printed.get(commands.find((each) => each.startsWith(start)) ?? "");
    expect(outputOf("holdfast services logs")).toContain("SELECT 'a slow statement'");
    expect(outputOf("holdfast metrics")).toContain("mysql_queries_per_second");
    expect(await sql("before", "SELECT id FROM items")).toBe("1\n");
    const members = await shell.json<NodeStatusJson[]>("holdfast nodes status shop");
    expect(members.map(({ role }) => role).sort()).toEqual(["primary", "replica"]);
  });

  /** The command as a user completes it, after what it is about has happened. */
  async function prepared(command: string): Promise<string> {
    if (command === "holdfast services connect shop") return `echo "SELECT 1" | ${command}`;
    if (command.startsWith("holdfast databases create")) await sql("shop", "CREATE TABLE items (id INT PRIMARY KEY)");
    if (command.startsWith("holdfast services logs")) await logSlowStatement();
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
