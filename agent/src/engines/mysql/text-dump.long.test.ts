import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { connectMysql, mysqlVerifier } from "@holdfast/testing/engines/mysql-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMysqlDriver } from "./driver.ts";
import { engineSocket } from "./layout.ts";
import { withSession } from "./session.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");
const page = readFileSync(join(import.meta.dirname, "../../../../docs/how-to/mysql.md"), "utf8");
/** The expression by which the page removes definers. */
const [, expression = ""] = /sed -E '([^']+)'/.exec(page) ?? [];

/** Objects whose definer users cannot name, and rows with the words of one. */
const contents = [
  "CREATE DATABASE source",
  "USE source",
  "CREATE TABLE notes (id INT PRIMARY KEY, note TEXT)",
  "INSERT INTO notes VALUES (1, 'DEFINER=`root`@`localhost` stays'), (2, 'a\\nCREATE DEFINER=`root`@`localhost` VIEW'), (3, '\\n/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */')",
  "CREATE VIEW told AS SELECT id, 'DEFINER=`a`@`b`' AS word FROM notes",
  "CREATE FUNCTION doubled(n INT) RETURNS INT DETERMINISTIC RETURN n * 2",
  "CREATE PROCEDURE words() SELECT 'DEFINER=`a`@`b`' AS word",
  "CREATE TRIGGER marks BEFORE INSERT ON notes FOR EACH ROW SET NEW.note = CONCAT(NEW.note, ' DEFINER=`a`@`b`')",
  "CREATE EVENT later ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01' DO DELETE FROM notes WHERE note = 'DEFINER=`a`@`b`'",
];

describe.skipIf(skip !== undefined)("a text of mysqldump", () => {
  let machine: EngineMachine;

  const client = (name: string, ...args: readonly string[]) => [
    `/usr/bin/${name}`,
    "--no-defaults",
    `--socket=${engineSocket(machine.instance)}`,
    `--user=${defaultUser}`,
    "--ssl-mode=REQUIRED",
    ...args,
  ];
  const run = (argv: readonly string[], input?: string) =>
    machine.run(argv, {
      env: { MYSQL_PWD: "secret" },
      signal: machine.signal,
      ...(input !== undefined && { input }),
    });
  const query = async (sql: string) => {
    const session = await connectMysql(machine, { user: defaultUser, password: "secret" });
    try {
      return (await session.query(sql))[0] as Record<string, unknown>[];
    } finally {
      session.destroy();
    }
  };

  beforeAll(async () => {
    const user = create(EngineUserSchema, { username: defaultUser, role: "admin", verifier: mysqlVerifier("secret") });
    machine = await createEngineMachine(async (deps) => createMysqlDriver(deps), "mysql", "9.7", { users: [user] });
    await machine.bringUp();
    await withSession(machine.instance, machine.signal, async (session) => {
      for (const sql of contents) await session.rows(sql);
      await session.rows("CREATE DATABASE target");
    });
  }, 120_000);
  afterAll(() => machine?.remove());

  it("is loaded by a user as the page says, with every row unchanged", async () => {
    const options = ["--single-transaction", "--routines", "--events", "--triggers", "--set-gtid-purged=OFF"];
    const dump = await run(client("mysqldump", ...options, "--no-tablespaces", "source"));
    await expect(run(client("mysql", "target"), dump)).rejects.toThrow("1227");
    const text = execFileSync("sed", ["-E", expression], { input: dump, encoding: "utf8", env: { LC_ALL: "C" } });
    await run(client("mysql", "target"), text);
    const notes = (database: string) => query(`SELECT id, note FROM ${database}.notes ORDER BY id`);
    expect(await notes("target")).toEqual(await notes("source"));
    expect(await query("SELECT word FROM target.told LIMIT 1")).toEqual([{ word: "DEFINER=`a`@`b`" }]);
    await query("INSERT INTO target.notes VALUES (4, 'new')");
    expect(await query("SELECT note FROM target.notes WHERE id = 4")).toEqual([{ note: "new DEFINER=`a`@`b`" }]);
    const definers = await query(
      `SELECT definer AS author FROM information_schema.routines WHERE routine_schema = 'target'
       UNION SELECT definer FROM information_schema.views WHERE table_schema = 'target'
       UNION SELECT definer FROM information_schema.triggers WHERE trigger_schema = 'target'
       UNION SELECT definer FROM information_schema.events WHERE event_schema = 'target'`,
    );
    expect(definers).toEqual([{ author: `${defaultUser}@%` }]);
    const [body] = await query(
      "SELECT event_definition AS body FROM information_schema.events WHERE event_schema = 'target'",
    );
    expect(body).toEqual({ body: "DELETE FROM notes WHERE note = 'DEFINER=`a`@`b`'" });
  });
});
