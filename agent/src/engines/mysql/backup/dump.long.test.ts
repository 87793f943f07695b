import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { create } from "@bufbuild/protobuf";
import type { BackupFacet, RecoveryEnd } from "@holdfast/agent/engines/backup-facet.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { connectMysql, mysqlVerifier } from "@holdfast/testing/engines/mysql-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Connection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createMysqlDriver } from "../driver.ts";
import { withSession } from "../session.ts";
import { type Definitions, definitionsStream, parseDefinitions } from "./dump-format.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");

/** Statements of users: every kind of table, column and program. */
const contents = [
  "CREATE DATABASE `lädt-nach` CHARACTER SET latin1 COLLATE latin1_german2_ci",
  "CREATE DATABASE sealed",
  "CREATE TABLE sealed.t (a INT PRIMARY KEY)",
  "INSERT INTO sealed.t VALUES (1)",
  `CREATE TABLE numbers (
     id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, tiny TINYINT, big BIGINT, d DECIMAL(65, 30), f FLOAT, g DOUBLE,
     bits BIT(64), flag BIT(1), y YEAR, e ENUM('', 'a', 'b'), s SET('x', 'y', 'z'),
     twice INT AS (tiny * 2) VIRTUAL, thrice INT GENERATED ALWAYS AS (tiny * 3) STORED, hidden INT INVISIBLE DEFAULT 7,
     CHECK (tiny < 100), KEY (twice), KEY ((tiny + 1)))`,
  `INSERT INTO numbers (id, tiny, big, d, f, g, bits, flag, y, e, s, hidden) VALUES
     (18446744073709551000, 1, -9223372036854775808, -0.000000000000000000000000000001, 16777217.123, 1e-300,
      b'1111111111111111111111111111111111111111111111111111111111111111', 1, 0, '', 'x,z', 1),
     (7, NULL, 9223372036854775807, 12345678901234567890123456789012345.5, 0.1, 0.1, 0, 0, 2026, 'b', '', 2),
     (8, -3, 0, NULL, 3.4e38, '-0', NULL, NULL, NULL, NULL, NULL, 3)`,
  "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
  "INSERT INTO numbers (id, e) VALUES (0, 'neither')",
  "CREATE TABLE times (at DATETIME(6), ts TIMESTAMP(6) NULL, d DATE, t TIME(3), KEY (at))",
  "INSERT INTO times VALUES ('2026-03-29 02:30:00.123456', '2026-03-29 02:30:00.654321', '0000-00-00', '-838:59:59.000')",
  "INSERT INTO times VALUES (NULL, NULL, NULL, NULL), (NULL, NULL, NULL, NULL)",
  "SET SESSION sql_mode = DEFAULT",
  `CREATE TABLE texts (k VARCHAR(50) COLLATE utf8mb4_bin PRIMARY KEY, latin VARCHAR(100) CHARACTER SET latin1,
     jis TEXT CHARACTER SET sjis, wide CHAR(10) CHARACTER SET utf16, bin VARBINARY(300), padded BINARY(5), b LONGBLOB,
     j JSON, FULLTEXT (jis)) COMMENT = 'it''s \\\\ "quoted" 😀'`,
  `INSERT INTO texts VALUES
     ('quote '' and \\\\ and \\0 and \\n', 'äöü€', '表\\\\ソ', 'ÄÖ', x'00ff27225c0a0d1a', 'ab', REPEAT(x'00ff275c', 250000),
      '{"a": [1, 2.5, "ü\\\\n", null, true], "b": "\\\\"quoted\\\\" ''"}'),
     ('', '', '', '', '', '', '', '[]'), ('null', NULL, NULL, NULL, NULL, NULL, NULL, NULL)`,
  `CREATE TABLE shapes (id INT PRIMARY KEY, p POINT NOT NULL SRID 4326, g GEOMETRY, SPATIAL INDEX (p))`,
  "INSERT INTO shapes VALUES (1, ST_GeomFromText('POINT(52.5 13.4)', 4326), ST_GeomFromText('POLYGON((0 0,0 1,1 1,0 0))'))",
  "CREATE TABLE large_rows (id INT PRIMARY KEY, b LONGBLOB, t LONGTEXT, j JSON)",
  "INSERT INTO large_rows VALUES (1, REPEAT(UNHEX('00FF275C'), 5000000), NULL, NULL), (3, 'small', 'small', '1')",
  "INSERT INTO large_rows SELECT 2, NULL, REPEAT(CHAR(39, 92, 32, 97 USING utf8mb4), 5000000), JSON_ARRAY(REPEAT(CHAR(34, 92, 39 USING utf8mb4), 700000))",
  "CREATE TABLE vectors (v VECTOR(3))",
  "INSERT INTO vectors VALUES (STRING_TO_VECTOR('[1, 2.5, -3]')), (NULL)",
  "CREATE TABLE parent (id INT PRIMARY KEY) ENGINE = InnoDB",
  "CREATE TABLE child (parent_id INT, FOREIGN KEY (parent_id) REFERENCES parent (id) ON DELETE CASCADE)",
  "INSERT INTO parent VALUES (1), (2)",
  "INSERT INTO child VALUES (1), (1), (2), (NULL)",
  `CREATE TABLE parts (id INT, region INT, PRIMARY KEY (id, region)) PARTITION BY RANGE (region)
     SUBPARTITION BY HASH (id) SUBPARTITIONS 2 (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)`,
  "INSERT INTO parts VALUES (1, 1), (2, 20), (3, 30)",
  "CREATE TABLE `a``b.c` (`d``e` INT, `select` TEXT)",
  "INSERT INTO `a``b.c` VALUES (1, 'x')",
  "CREATE TABLE `lädt-nach`.`größe` (`maß` INT DEFAULT (1 + 1), t TEXT) ROW_FORMAT = COMPRESSED",
  "INSERT INTO `lädt-nach`.`größe` VALUES (5, 'ß')",
  "CREATE TABLE computed (a INT AS (1) VIRTUAL)",
  "INSERT INTO computed VALUES (), ()",
  "CREATE TABLE old (a INT AUTO_INCREMENT PRIMARY KEY, b TEXT) ENGINE = MyISAM",
  "INSERT INTO old VALUES (3, 'three')",
  "CREATE TABLE archived (a INT) ENGINE = ARCHIVE",
  "INSERT INTO archived VALUES (1)",
  "CREATE TABLE listed (a INT NOT NULL, b VARCHAR(20) NOT NULL) ENGINE = CSV",
  "INSERT INTO listed VALUES (1, 'a,\"b')",
  "CREATE TABLE volatile_rows (a INT) ENGINE = MEMORY",
  "CREATE TABLE numbered (a INT)",
  "INSERT INTO numbered WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i FROM n",
  "CREATE VIEW z_first AS SELECT 1 AS one",
  "CREATE VIEW a_second AS SELECT one + 1 AS two FROM z_first",
  "CREATE FUNCTION doubled(n INT) RETURNS INT DETERMINISTIC RETURN n * 2",
  "CREATE SQL SECURITY INVOKER VIEW owned AS SELECT doubled(tiny) AS n FROM numbers",
  "CREATE VIEW hashed AS SELECT MD5('a') AS five, SHA1('a') AS one, SHA('a') AS same",
  "SET NAMES latin1",
  "SET SESSION sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'",
  `CREATE FUNCTION "joined"(a VARCHAR(10), b VARCHAR(10)) RETURNS VARCHAR(20) DETERMINISTIC RETURN a || 'ü' || b`,
  "SET NAMES utf8mb4",
  "SET SESSION sql_mode = DEFAULT",
  "CREATE PROCEDURE filled(OUT n INT) COMMENT 'fills' BEGIN INSERT INTO numbered VALUES (0); SET n = 1; END",
  "CREATE TRIGGER second_by_name BEFORE INSERT ON numbered FOR EACH ROW SET NEW.a = NEW.a + 1",
  "CREATE TRIGGER first_by_name BEFORE INSERT ON numbered FOR EACH ROW SET NEW.a = NEW.a * 10",
  "CREATE EVENT nightly ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 03:00:00' DO DELETE FROM numbered WHERE a < 0",
  "CREATE EVENT off ON SCHEDULE EVERY 1 HOUR DISABLE COMMENT 'paused' DO DO 1",
  "CREATE USER byhand@'%' IDENTIFIED BY 'of the source' REQUIRE SSL",
  "ALTER USER byhand@'%' IDENTIFIED BY 'newer' RETAIN CURRENT PASSWORD",
  "CREATE ROLE reporting",
  "GRANT SELECT ON defaultdb.* TO reporting",
  "GRANT SELECT (k) ON defaultdb.texts TO byhand@'%'",
  "GRANT EXECUTE ON PROCEDURE defaultdb.filled TO byhand@'%'",
  "ALTER DATABASE sealed READ ONLY = 1",
];

describe.skipIf(skip !== undefined)("a dump of MySQL", () => {
  let source: EngineMachine;
  let copy: EngineMachine;
  let end: RecoveryEnd;
  let taken: ReadonlyMap<string, Buffer>;

  beforeAll(async () => {
    [source, copy] = await Promise.all([machineOf("of the source"), machineOf("of the copy")]);
    await Promise.all([source.bringUp(), copy.writeConfig()]);
    const client = await connect(source, "of the source");
    for (const sql of contents) await client.query(sql);
    await client.end();
    // Users of the platform cannot grant roles.
    await withSession(source.instance, source.signal, async (session) => {
      await session.rows("GRANT reporting TO byhand@'%'");
      await session.rows("ALTER USER byhand@'%' DEFAULT ROLE reporting");
    });
    taken = await take(source);
    const facet = facetOf(copy);
    end = await copy.asComponent(async () => {
      for (const [stream, bytes] of taken)
        await facet.restore.unpack(copy.instance, stream, chunks(bytes), copy.signal);
      const plan = {
        target: { kind: "backup_end" },
        isSameService: false,
        log: undefined,
        scratch: join(copy.instance.paths.data, "scratch"),
        report: () => undefined,
      } as const;
      return facet.restore.finish(copy.instance, plan, copy.signal);
    });
    await copy.start();
    await copy.driver.ready(copy.instance, copy.signal).catch((error: unknown) => {
      throw new Error(copy.output(), { cause: error });
    });
  });
  afterAll(async () => {
    await Promise.all([source?.remove(), copy?.remove()]);
  });

  function machineOf(password: string): Promise<EngineMachine> {
    const user = create(EngineUserSchema, { username: "app_user", role: "admin", verifier: mysqlVerifier(password) });
    return createEngineMachine(async (deps) => createMysqlDriver(deps), "mysql", "9.7", { users: [user] });
  }

  function facetOf({ driver }: EngineMachine): BackupFacet {
    if (driver.backup === undefined) throw new Error("the driver has no backups");
    return driver.backup;
  }

  const connect = (machine: EngineMachine, password: string, user = "app_user"): Promise<Connection> =>
    connectMysql(machine, { user, password });

  async function take(machine: EngineMachine, options = {}): Promise<Map<string, Buffer>> {
    const opened = await facetOf(machine).open(machine.instance, machine.signal, options);
    try {
      const read = opened.streams.map(async ({ name, bytes }) => [name, await buffer(bytes)] as const);
      return new Map(await Promise.all(read));
    } finally {
      await opened.close();
    }
  }

  const definitionsIn = (dump: ReadonlyMap<string, Buffer>) =>
    parseDefinitions(dump.get(definitionsStream)?.toString() ?? "");

  function checksums({ instance, signal }: EngineMachine, { tables }: Definitions): Promise<unknown[]> {
    return withSession(instance, signal, async (session) => {
      const sums: unknown[] = [];
      for (const { database, name } of tables) {
        const quoted = `\`${database}\`.\`${name.replaceAll("`", "``")}\``;
        sums.push(...(await session.rows(`CHECKSUM TABLE ${quoted} EXTENDED`)));
      }
      return sums;
    });
  }

  it("has the rows of every table", async () => {
    const definitions = definitionsIn(taken);
    expect(definitions.tables.length).toBe(18);
    expect(await checksums(copy, definitions)).toEqual(await checksums(source, definitions));
  });

  it("has the definitions of tables, views, routines, triggers, events and privileges", async () => {
    const [before, after] = [definitionsIn(taken), definitionsIn(await take(copy))];
    const disabled = before.programs.map((program) =>
      program.name === "nightly"
        ? { ...program, isEnabled: false, sql: program.sql.replace(" ENABLE ", " DISABLE ") }
        : program,
    );
    // MySQL prints the character set of a column that was created with only a collation from the second dump on.
    const tables = after.tables.map((table) => ({
      ...table,
      sql: table.sql.replace("CHARACTER SET latin1 COLLATE", "COLLATE"),
    }));
    const sorted = (programs: Definitions["programs"]) => programs.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    expect(tables.map(({ sql }) => sql)).toEqual(
      before.tables.map(({ sql }) => sql.replace("CHARACTER SET latin1 COLLATE", "COLLATE")),
    );
    expect(after.databases).toEqual(before.databases);
    expect(sorted(after.programs)).toEqual(sorted(disabled));
    const grantsOf = ({ accounts }: Definitions) =>
      accounts.map(({ name, host, grants, defaultRoles }) => ({ name, host, grants, defaultRoles }));
    expect(grantsOf(after)).toEqual(grantsOf(before));
  });

  it("is used by the users of the settings alone, and its events are disabled and listed", async () => {
    expect(end.lockedUsers).toEqual(["byhand"]);
    expect(end.warnings).toEqual([expect.stringContaining("defaultdb.nightly")]);
    const retained =
      "SELECT user FROM mysql.user WHERE JSON_CONTAINS_PATH(user_attributes, 'one', '$.additional_password')";
    expect(await withSession(copy.instance, copy.signal, (session) => session.rows(retained))).toEqual([]);
    await expect(connect(copy, "of the source", "byhand")).rejects.toThrow();
    await expect(connect(copy, "of the source")).rejects.toThrow("Access denied");
    const client = await connect(copy, "of the copy");
    const original = await connect(source, "of the source");
    for (const called of ["SELECT two, HEX(joined('a', 'b')) AS bytes FROM a_second", "SELECT * FROM hashed"]) {
      const [[before], [after]] = await Promise.all([original.query(called), client.query(called)]);
      expect(after).toEqual(before);
    }
    await original.end();
    await expect(client.query("INSERT INTO sealed.t VALUES (2)")).rejects.toThrow(/read only/i);
    await client.end();
  });

  it("is refused if a definition changes during the dump; the third attempt blocks such changes", async () => {
    const client = await connect(source, "of the source");
    const opened = await facetOf(source).open(source.instance, source.signal, { attempt: 1 });
    await client.query("ALTER TABLE numbered ADD COLUMN b INT, ALGORITHM = COPY");
    await expect(Promise.all(opened.streams.map(({ bytes }) => buffer(bytes)))).rejects.toThrow("definition");
    await opened.close();
    const third = await facetOf(source).open(source.instance, source.signal, { attempt: 3 });
    await client.query("SET SESSION lock_wait_timeout = 1");
    const change = "ALTER TABLE numbered DROP COLUMN b, ALGORITHM = COPY";
    await expect(client.query(change)).rejects.toThrow(/timeout/);
    await client.query("INSERT INTO numbered (a) VALUES (5)");
    await Promise.all(third.streams.map(({ bytes }) => buffer(bytes)));
    await third.close();
    await client.query("SET SESSION lock_wait_timeout = 60");
    await client.query(change);
    await client.end();
  });

  it("is refused with the row and the plan's limit if a row needs more memory than the plan has", async () => {
    const spec = { ...source.instance.spec, memoryBytes: 256n << 20n };
    const opened = await facetOf(source).open({ ...source.instance, spec }, source.signal, { attempt: 1 });
    const read = Promise.all(opened.streams.map(({ bytes }) => buffer(bytes)));
    await expect(read).rejects.toThrow(/A row of defaultdb\.large_rows has \d+ MiB.*up to 12 MiB: take a larger plan/);
    await opened.close();
  });

  it("has a position in the log although a long statement is in the way of the first lock", async () => {
    const client = await connect(source, "of the source");
    const holder = await waitForLock(client, "parent");
    const opened = await facetOf(source).open(source.instance, source.signal);
    expect(opened.streams.map(({ name }) => name)).toEqual([definitionsStream, "rows-1", "rows-2", "rows-3"]);
    const { positions, consistentTime } = await opened.end();
    expect(positions).toMatchObject({ branch: expect.stringMatching(/^[0-9a-f-]{36}:\d+$/) });
    expect(consistentTime).toBeInstanceOf(Date);
    await opened.close();
    for (const each of [client, holder]) each.destroy();
  });

  it.each([
    ["an open transaction is in the way of both locks", ["START TRANSACTION", "INSERT INTO parent VALUES (9)"]],
    ["a transaction is prepared", ["XA START 'x'", "INSERT INTO parent VALUES (9)", "XA END 'x'", "XA PREPARE 'x'"]],
  ])("has no position in the log while %s", async (_, statements) => {
    const [writer, reader] = [await connect(source, "of the source"), await connect(source, "of the source")];
    for (const sql of statements) await writer.query(sql);
    const holder = await waitForLock(reader, "child");
    const opened = await facetOf(source).open(source.instance, source.signal);
    expect((await opened.end()).positions).toBeNull();
    await opened.close();
    await writer.query(statements.length === 2 ? "ROLLBACK" : "XA ROLLBACK 'x'");
    for (const client of [writer, reader, holder]) client.destroy();
  });

  /** Resolves with the holder of a lock once a statement of the client has waited for it more than a second. */
  async function waitForLock(client: Connection, table: string): Promise<Connection> {
    const holder = await connect(source, "of the source");
    await holder.query("SELECT GET_LOCK('held', 0)");
    client.query(`SELECT GET_LOCK('held', 600) FROM ${table}`).catch(() => undefined);
    const running = `SELECT 1 FROM performance_schema.processlist
      WHERE info LIKE 'SELECT GET_LOCK%${table}' AND time > 1`;
    await waitUntil("the statement runs", async () => {
      const rows = await withSession(source.instance, source.signal, (session) => session.rows(running));
      return rows.length > 0;
    });
    return holder;
  }
});

async function* chunks(bytes: Buffer): AsyncGenerator<Buffer> {
  const size = 64 << 10;
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
