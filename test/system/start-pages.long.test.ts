import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { startTestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot, testProgram } from "@holdfast/testing/platform/platform-software.ts";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createPageShell, type PageShell } from "./commands/page-shell.ts";

const longMs = 900_000;
const checkout = join(import.meta.dirname, "..", "..");
const cache = join(homedir(), ".cache", "holdfast");
const skipMysql = await requireRecipes(import.meta.filename, "mysql");

/** The shell blocks of a page of docs/start, in their order. */
function blocksOf(page: string): string[] {
  const text = readFileSync(join(checkout, "docs", "start", `${page}.md`), "utf8");
  return [...text.matchAll(/^( *)```sh\n(.*?)^ *```/gms)].map(([, indent = "", block = ""]) =>
    block.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  );
}

const ofPath = (lines: string) => lines.replaceAll("./bin/holdfast.js", "holdfast.js");

// Only root gives a client other names than those of the host.
describe.skipIf(!asRoot)("commands of the first pages", { timeout: longMs }, () => {
  let platform: Platform;
  let shell: PageShell;
  let directory: string;

  beforeAll(async () => {
    platform = await startPlatform();
    shell = createPageShell(platform);
    directory = mkdtempSync(join(tmpdir(), "holdfast-start-pages-"));
    mkdirSync(join(directory, "bin"));
    const postgresql = testProgram("postgresql", "17");
    for (const name of ["psql", "pg_dump", "pg_restore"]) {
      const argv = ["/bin/sh", "-c", `cd ${directory} && exec ${postgresql.executable(name)} "$@"`, name];
      const { command, args } = postgresql.launch({ argv, uid: 0, binds: [tmpdir()], asRoot });
      const words = [command, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
      writeFileSync(join(directory, "bin", name), `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`, { mode: 0o755 });
    }
  }, longMs);
  afterAll(async () => {
    shell?.remove();
    await platform?.remove();
    rmSync(directory, { recursive: true, force: true });
  }, longMs);

  /** Runs lines of a page in a directory of the user, without a terminal. */
  const run = (lines: string) =>
    shell.run(`cd ${directory}; PATH=${directory}/bin:${checkout}/bin:$PATH; ${ofPath(lines)}`);

  it("create, connect to, back up, fork and delete a first database", async () => {
    const [block = ""] = blocksOf("first-database");
    const lines = block.trim().split("\n");
    expect(lines).toHaveLength(7);
    const printed: string[] = [];
    for (const line of lines) printed.push(await run(`${line.replace(/ +#.*/, "")} < /dev/null`));
    expect(printed[2]).toMatch(/PostgreSQL \d+/);
    expect(printed[6]).toContain("first");
  });

  it("move a PostgreSQL in", async () => {
    const old = await startTestPostgresql();
    onTestFinished(() => old.stop());
    const [block = ""] = blocksOf("migrate");
    const made = `psql "$OLD" -c "CREATE TABLE orders (id int PRIMARY KEY, item text)" -c "INSERT INTO orders SELECT n, 'item ' || n FROM generate_series(1, 1000) n"`;
    const read = `psql "$SHOP" --tuples-only --no-align -c "SELECT count(*), max(item) FROM orders"`;
    expect(await run(`OLD='${old.url}'\nset -e\n${made}\n${block}\n${read}`)).toMatch(/1000\|item 999\n$/);
  });

  it.skipIf(skipMysql !== undefined)("move a MySQL in", async () => {
    const [, block = "", programs = ""] = blocksOf("migrate");
    const host = "old";
    await run(
      `holdfast.js services create ${host} --type mysql --wait && holdfast.js databases create ${host} shop --wait`,
    );
    const sql = "CREATE TABLE orders (id int PRIMARY KEY); INSERT INTO orders VALUES (7)";
    await run(`holdfast.js services connect ${host} --database shop -- -e "${sql}"`);
    const { hostname } = await shell.json<ServiceJson>(`holdfast services get ${host}`);
    const password = await run(`holdfast.js users password ${host} app_user`);
    const filled = block
      .replace("--host OLD --user app --password", `--host ${hostname} --user app_user`)
      .replace("services create shop ", "services create moved ")
      .replaceAll(" shop shop", " moved shop")
      .replace("connect shop", "connect moved");
    await run(
      `export MYSQL_PWD='${password.trim()}'\nset -e\n${programs.replace("~/.cache/holdfast", cache)}\n${filled}`,
    );
    expect(await run(`holdfast.js services connect moved --database shop -- -N -e "SELECT id FROM orders"`)).toMatch(
      /7/,
    );
  });
});
