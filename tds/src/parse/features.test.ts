import { describe, expect, test } from "vitest";
import { parseBatch } from "./batch.ts";

/** Numbers after which SqlClient or Entity Framework run a statement or a sign-in again. */
const retriedByDrivers = [
  20, 64, 121, 233, 997, 1203, 1204, 1205, 1222, 4060, 4221, 8645, 8651, 10053, 10054, 10060, 10928, 10929, 10936,
  40143, 40197, 40501, 40540, 40613, 41301, 41302, 41305, 41325, 41839, 42108, 42109, 49918, 49919, 49920,
];

describe("unsupported features", () => {
  // biome-ignore format: a table
  test.each([
    [6819,  "SELECT 1 AS a FOR XML EXPLICIT"],
    [7202,  "SELECT * FROM server.db.dbo.t"],
    [7202,  "SELECT * FROM OPENQUERY(server, 'SELECT 1')"],
    [7601,  "SELECT * FROM FREETEXTTABLE(t, a, 'x')"],
    [8501,  "BEGIN DISTRIBUTED TRANSACTION"],
    [10342, "CREATE ASSEMBLY a FROM 'a.dll'"],
    [15281, "SELECT * FROM OPENROWSET('x', 'y', 'z')"],
    [15281, "SELECT * FROM OPENDATASOURCE('x', 'y').db.dbo.t"],
    [40510, "DBCC CHECKDB"],
    [40517, "CREATE TYPE dbo.list AS TABLE (a int) WITH (MEMORY_OPTIMIZED = ON)"],
    [40510, "GOTO finish"],
    [40517, "SELECT * FROM t PIVOT (SUM(a) FOR b IN ([x])) AS p"],
    [40517, "SELECT * FROM t FOR SYSTEM_TIME ALL"],
    [40524, "CREATE TABLE t (a geography)"],
    [40514, "SELECT * FROM OPENXML(@a, '/')"],
    [40517, "MERGE t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET @a = 1;"],
    [40517, "CREATE DATABASE other COLLATE Latin1_General_BIN"],
    [448,   "SELECT a COLLATE Klingon_CI_AS FROM t"],
    [40510, "ALTER DATABASE other SET READ_COMMITTED_SNAPSHOT ON"],
  ])("%i: %s", (number, sql) => {
    expect(() => parseBatch(sql)).toThrow(expect.objectContaining({ number }));
    expect(retriedByDrivers).not.toContain(number);
  });
});
