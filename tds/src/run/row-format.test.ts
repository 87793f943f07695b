import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds, type TdsClient } from "@holdfast/testing/servers/tds-client.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let postgresql: TestPostgresql;
let tds: TestTds;
let client: TdsClient;

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  tds = await startTestTds(postgresql.url);
  client = await connectTds(tds);
  const { errors } = await client.batch(`
    CREATE TABLE dbo.People (Id int PRIMARY KEY, Name nvarchar(50) NULL, Active bit NULL, Born date NULL);
    CREATE TABLE dbo.Orders (Id int PRIMARY KEY, Person int NOT NULL, Total money NULL, Note nvarchar(50) NULL);
    CREATE TABLE dbo.Lines (OrderId int, Product nvarchar(20));
    INSERT INTO Lines VALUES (10, 'x'), (10, 'y'), (12, 'z');
    INSERT INTO People VALUES (1, N'Ann', 1, '2000-01-31'), (2, N'B<&">/ü', 0, NULL), (3, NULL, NULL, NULL);
    INSERT INTO Orders VALUES (10, 1, 5, N'a'), (11, 1, 7.5, NULL), (12, 2, NULL, N'');`);
  expect(errors).toEqual([]);
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});

/** The only value of the last result set; undefined without rows. */
async function value(sql: string): Promise<unknown> {
  const { sets, messages, errors } = await client.batch(sql);
  expect(errors, messages.join(" ")).toEqual([]);
  const rows = sets.at(-1) ?? [];
  expect(rows.length).toBeLessThan(2);
  return Object.values(rows[0] ?? {})[0];
}
const errors = async (sql: string) => (await client.batch(sql)).errors;

const lines =
  "LEFT JOIN Orders o ON o.Person = p.Id LEFT JOIN Lines l ON l.OrderId = o.Id ORDER BY p.Id, o.Id, l.Product";
const xsi = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"';

describe("FOR JSON", () => {
  // biome-ignore format: a table
  test.each([
    ["rows without NULLs",        "SELECT Id, Name FROM People WHERE Id <> 2 ORDER BY Id DESC FOR JSON PATH",     '[{"Id":3},{"Id":1,"Name":"Ann"}]'],
    ["the order of AUTO",         "SELECT TOP 2 * FROM People AS p ORDER BY Id FOR JSON AUTO",                     '[{"Id":1,"Name":"Ann","Active":true,"Born":"2000-01-31"},{"Id":2,"Name":"B<&\\">\\/ü","Active":false}]'],
    ["NULLs by an option",        "SELECT Id, Name FROM People WHERE Id = 3 FOR JSON PATH, INCLUDE_NULL_VALUES",   '[{"Id":3,"Name":null}]'],
    ["a root",                    "SELECT Id FROM People WHERE Id = 1 FOR JSON PATH, ROOT('people')",              '{"people":[{"Id":1}]}'],
    ["a root without a name",     "SELECT Id FROM People WHERE Id = 1 FOR JSON AUTO, ROOT",                        '{"root":[{"Id":1}]}'],
    ["one object",                "SELECT 1 AS a FOR JSON PATH, WITHOUT_ARRAY_WRAPPER",                            '{"a":1}'],
    ["dots of names",             "SELECT 1 AS [a.b], 2 AS [a.c.d], NULL AS [e.f], 3 AS g FOR JSON PATH",          '[{"a":{"b":1,"c":{"d":2}},"g":3}]'],
    ["dots with NULLs",           "SELECT CAST(NULL AS int) AS [e.f] FOR JSON PATH, INCLUDE_NULL_VALUES",          '[{"e":{"f":null}}]'],
    ["dots of AUTO",              "SELECT Id AS [a.b] FROM People WHERE Id = 1 FOR JSON AUTO",                     '[{"a.b":1}]'],
    ["nested JSON",               "SELECT Id, (SELECT o.Id, Total FROM Orders o WHERE o.Person = p.Id ORDER BY o.Id FOR JSON PATH) AS orders FROM People p ORDER BY Id FOR JSON PATH", '[{"Id":1,"orders":[{"Id":10,"Total":5.0000},{"Id":11,"Total":7.5000}]},{"Id":2,"orders":[{"Id":12}]},{"Id":3}]'],
    ["an expression of it",       "SELECT LEN((SELECT Id FROM People WHERE Id = 1 FOR JSON PATH)) AS n",           10],
    ["a text with JSON",          "SELECT '[1]' AS a FOR JSON PATH",                                               '[{"a":"[1]"}]'],
    ["types",                     "SELECT CAST('2026-01-31 12:00:00.123' AS datetime) AS a, 0x0aff AS b, CAST('6f9619ff-8b86-d011-b42d-00c04fc964ff' AS uniqueidentifier) AS c, CAST(1.5 AS float) AS d, CAST(1.50 AS decimal(5,2)) AS e, CAST('12:30' AS time(0)) AS f FOR JSON PATH", '[{"a":"2026-01-31T12:00:00.123","b":"Cv8=","c":"6F9619FF-8B86-D011-B42D-00C04FC964FF","d":1.5,"e":1.50,"f":"12:30:00"}]'],
    ["a union",                   "SELECT 1 AS a UNION ALL SELECT 2 ORDER BY a FOR JSON PATH",                      '[{"a":1},{"a":2}]'],
    ["groups",                    "SELECT Person, COUNT(*) AS n FROM Orders GROUP BY Person ORDER BY Person FOR JSON PATH", '[{"Person":1,"n":2},{"Person":2,"n":1}]'],
    ["no rows",                   "SELECT Id FROM People WHERE Id = 9 FOR JSON PATH",                              undefined],
    ["no rows of a subquery",     "SELECT ISNULL((SELECT Id FROM People WHERE Id = 9 FOR JSON PATH), 'none') AS a", "none"],
    ["a variable",                "DECLARE @a nvarchar(max) = (SELECT Id FROM People WHERE Id = 1 FOR JSON PATH); SELECT @a AS a", '[{"Id":1}]'],
    ["a hint after it",           "SELECT 1 AS a FOR JSON PATH OPTION (RECOMPILE)",                                '[{"a":1}]'],
    ["AUTO of a join",            "SELECT p.Id, p.Name, Orders.Id, Total FROM People p JOIN Orders ON Orders.Person = p.Id ORDER BY p.Id, Orders.Id FOR JSON AUTO", '[{"Id":1,"Name":"Ann","Orders":[{"Id":10,"Total":5.0000},{"Id":11,"Total":7.5000}]},{"Id":2,"Name":"B<&\\">\\/ü","Orders":[{"Id":12}]}]'],
    ["AUTO of three tables",      `SELECT p.Name, o.Id AS OrderId, l.Product, p.Id FROM People p ${lines} FOR JSON AUTO, ROOT('r')`, '{"r":[{"Name":"Ann","Id":1,"o":[{"OrderId":10,"l":[{"Product":"x"},{"Product":"y"}]},{"OrderId":11,"l":[{}]}]},{"Name":"B<&\\">\\/ü","Id":2,"o":[{"OrderId":12,"l":[{"Product":"z"}]}]},{"Id":3,"o":[{"l":[{}]}]}]}'],
    ["AUTO in the order of rows", "SELECT p.Active, o.Id FROM People p JOIN Orders o ON o.Person = p.Id ORDER BY o.Id DESC FOR JSON AUTO", '[{"Active":false,"o":[{"Id":12}]},{"Active":true,"o":[{"Id":11},{"Id":10}]}]'],
    ["AUTO with expressions",     "SELECT x.Id, COUNT(*) AS n FROM (SELECT Id FROM People) AS x JOIN Orders o ON o.Person = x.Id GROUP BY x.Id ORDER BY x.Id FOR JSON AUTO", '[{"Id":1,"n":2},{"Id":2,"n":1}]'],
    ["AUTO of each row",          "SELECT p.Id, (SELECT o.Id, l.Product FROM Orders o JOIN Lines l ON l.OrderId = o.Id WHERE o.Person = p.Id ORDER BY o.Id, Product FOR JSON AUTO) AS os FROM People p ORDER BY p.Id FOR JSON AUTO", '[{"Id":1,"os":[{"Id":10,"l":[{"Product":"x"},{"Product":"y"}]}]},{"Id":2,"os":[{"Id":12,"l":[{"Product":"z"}]}]},{"Id":3}]'],
    ["AUTO with NULLs",           "SELECT p.Born, o.Note FROM People p JOIN Orders o ON o.Person = p.Id WHERE o.Id > 10 ORDER BY o.Id FOR JSON AUTO, INCLUDE_NULL_VALUES, WITHOUT_ARRAY_WRAPPER", '{"Born":"2000-01-31","o":[{"Note":null}]},{"Born":null,"o":[{"Note":""}]}'],
    ["AUTO without rows",         "SELECT p.Id, o.Id FROM People p JOIN Orders o ON o.Person = p.Id WHERE p.Id > 5 FOR JSON AUTO", undefined],
  ])("%s", async (_, sql, expected) => {
    expect(await value(sql)).toEqual(expected);
  });

  test("errors have the numbers of SQL Server", async () => {
    expect(await errors("SELECT 1 FOR JSON PATH")).toEqual([13605]);
    expect(await errors("SELECT 1 AS a, 2 AS a FOR JSON PATH")).toEqual([13601]);
    expect(await errors("SELECT 1 AS a, 2 AS [a.b] FOR JSON PATH")).toEqual([13601]);
    expect(await errors("SELECT 1 AS [a.b], 2 AS a FOR JSON PATH")).toEqual([13601]);
    expect(await errors("SELECT 1 AS a FOR JSON AUTO")).toEqual([13600]);
    expect(await errors("SELECT Id FROM People UNION SELECT 1 FOR JSON AUTO")).toEqual([13600]);
    expect(await errors("SELECT p.Id AS o, o.Id FROM People p JOIN Orders o ON o.Person = p.Id FOR JSON AUTO")).toEqual(
      [13601],
    );
  });

  test("every name and text is parsed as it was", async () => {
    const name = fc
      .string({ unit: "grapheme", minLength: 1, maxLength: 20 })
      .filter((each) => !/[.\0]/.test(each.trim()) && each.trim() !== "");
    const text = fc.string({ unit: "grapheme", maxLength: 50 }).filter((each) => !each.includes("\0"));
    await fc.assert(
      fc.asyncProperty(name, text, async (key, each) => {
        const quoted = (part: string) => `N'${part.replaceAll("'", "''")}'`;
        const json = await value(`SELECT ${quoted(each)} AS [${key.replaceAll("]", "]]")}] FOR JSON PATH`);
        expect(JSON.parse(String(json))).toEqual([{ [key]: each }]);
      }),
      { numRuns: 60 },
    );
  });
});

describe("FOR XML", () => {
  // biome-ignore format: a table
  test.each([
    ["RAW",                       "SELECT Id, Name FROM People ORDER BY Id FOR XML RAW",                           '<row Id="1" Name="Ann"/><row Id="2" Name="B&lt;&amp;&quot;&gt;/ü"/><row Id="3"/>'],
    ["RAW with a name and root",  "SELECT Id FROM People WHERE Id = 1 FOR XML RAW('p'), ROOT('people')",           '<people><p Id="1"/></people>'],
    ["RAW with elements",         "SELECT Id, Name FROM People WHERE Id <> 2 ORDER BY Id FOR XML RAW('p'), ELEMENTS", "<p><Id>1</Id><Name>Ann</Name></p><p><Id>3</Id></p>"],
    ["PATH",                      "SELECT Id, Name FROM People WHERE Id = 2 FOR XML PATH",                         '<row><Id>2</Id><Name>B&lt;&amp;"&gt;/ü</Name></row>'],
    ["a list of values",          "SELECT ',' + Name FROM People WHERE Name IS NOT NULL ORDER BY Id FOR XML PATH('')", ',Ann,B&lt;&amp;"&gt;/ü'],
    ["STUFF over it",             "SELECT STUFF((SELECT ', ' + CAST(Id AS varchar(9)) FROM People ORDER BY Id FOR XML PATH('')), 1, 2, '') AS a", "1, 2, 3"],
    ["a list of each row",        "SELECT Id, STUFF((SELECT ',' + CAST(o.Id AS varchar(9)) FROM Orders o WHERE o.Person = p.Id ORDER BY o.Id FOR XML PATH('')), 1, 1, '') AS l FROM People p WHERE Id < 3 ORDER BY p.Id FOR JSON PATH", '[{"Id":1,"l":"10,11"},{"Id":2,"l":"12"}]'],
    ["attributes and levels",     "SELECT Id AS [@id], Active AS [name/@a], Name AS [name/first], 'x' AS [name/text()] FROM People WHERE Id = 1 FOR XML PATH('p')", '<p id="1"><name a="1"><first>Ann</first>x</name></p>'],
    ["levels",                    "SELECT 1 AS [@id], 2 AS [a/@b], 3 AS [a/c], 4 AS [a/d/e], 5 AS f, 6 AS [a/g] FOR XML PATH('p')", '<p id="1"><a b="2"><c>3</c><d><e>4</e></d></a><f>5</f><a><g>6</g></a></p>'],
    ["levels that are NULL",      "SELECT CAST(NULL AS int) AS [@c], CAST(NULL AS int) AS [a/@b], CAST(NULL AS int) AS [a/b/c], '' AS d FOR XML PATH('p')", "<p><d></d></p>"],
    ["a row of NULLs",            "SELECT CAST(NULL AS int) AS a FOR XML PATH('p')",                               "<p/>"],
    ["text in an element",        "SELECT 'x' AS [text()], 'y' AS [*], 1 AS a FOR XML PATH('p')",                  "<p>xy<a>1</a></p>"],
    ["nested XML",                "SELECT Id, (SELECT o.Id AS [@id] FROM Orders o WHERE o.Person = p.Id ORDER BY o.Id FOR XML PATH('o'), TYPE) FROM People p WHERE Id = 1 FOR XML PATH('p')", '<p><Id>1</Id><o id="10"/><o id="11"/></p>'],
    ["nested text",               "SELECT (SELECT 1 AS a FOR XML PATH('o')) AS b FOR XML PATH('p')",                "<p><b>&lt;o&gt;&lt;a&gt;1&lt;/a&gt;&lt;/o&gt;</b></p>"],
    ["AUTO",                      "SELECT Id, Name FROM People WHERE Id <> 2 ORDER BY Id FOR XML AUTO",            '<People Id="1" Name="Ann"/><People Id="3"/>'],
    ["AUTO of expressions",       "SELECT COUNT(*) AS n FROM People FOR XML AUTO",                                 '<People n="3"/>'],
    ["AUTO of three tables",      `SELECT p.Name, o.Id AS OrderId, l.Product, p.Id FROM People p ${lines} FOR XML AUTO, ROOT('r')`, '<r><p Name="Ann" Id="1"><o OrderId="10"><l Product="x"/><l Product="y"/></o><o OrderId="11"><l/></o></p><p Name="B&lt;&amp;&quot;&gt;/ü" Id="2"><o OrderId="12"><l Product="z"/></o></p><p Id="3"><o><l/></o></p></r>'],
    ["AUTO with elements",        "SELECT p.Id, o.Note FROM People p JOIN Orders o ON o.Person = p.Id WHERE p.Id = 1 ORDER BY o.Id FOR XML AUTO, ELEMENTS", "<p><Id>1</Id><o><Note>a</Note></o><o/></p>"],
    ["AUTO with nil",             "SELECT p.Id, o.Note FROM People p JOIN Orders o ON o.Person = p.Id WHERE o.Id = 11 FOR XML AUTO, ELEMENTS XSINIL", `<p ${xsi}><Id>1</Id><o><Note xsi:nil="true"/></o></p>`],
    ["PATH with nil",             "SELECT Name AS [@n], Born AS [a/b], Id FROM People WHERE Id > 1 ORDER BY Id DESC FOR XML PATH('p'), ELEMENTS XSINIL, ROOT('q')", `<q ${xsi}><p><a><b xsi:nil="true"/></a><Id>3</Id></p><p n="B&lt;&amp;&quot;&gt;/ü"><a><b xsi:nil="true"/></a><Id>2</Id></p></q>`],
    ["RAW with nil",              "SELECT Name, Born FROM People WHERE Id = 3 FOR XML RAW, ELEMENTS XSINIL",        `<row ${xsi}><Name xsi:nil="true"/><Born xsi:nil="true"/></row>`],
    ["names",                     "SELECT 1 AS [a b], 2 AS [1c] FOR XML RAW",                                      '<row a_x0020_b="1" _x0031_c="2"/>'],
    ["types",                     "SELECT CAST('2026-01-31 12:00:00.123' AS datetime) AS a, 0x0aff AS b, CAST(1 AS bit) AS c, CAST(2.50 AS money) AS d FOR XML RAW", '<row a="2026-01-31T12:00:00.123" b="Cv8=" c="1" d="2.5000"/>'],
    ["no rows",                   "SELECT Id FROM People WHERE Id = 9 FOR XML PATH",                               undefined],
    ["a type",                    "SELECT 1 AS a FOR XML PATH('p'), TYPE",                                         "<p><a>1</a></p>"],
  ])("%s", async (_, sql, expected) => {
    expect(await value(sql)).toEqual(expected);
  });

  test("errors have the numbers of SQL Server", async () => {
    expect(await errors("SELECT 1 FOR XML RAW")).toEqual([6809]);
    expect(await errors("SELECT 1 AS a, 2 AS [@b] FOR XML PATH")).toEqual([6852]);
    expect(await errors("SELECT 1 AS [@b] FOR XML PATH('')")).toEqual([6864]);
    expect(await errors("SELECT 1 AS Tag FROM People FOR XML EXPLICIT")).toEqual([6819]);
    expect(await errors("SELECT 1 AS a FOR XML AUTO")).toEqual([6810]);
  });

  test("a row has hundreds of columns, and an element dozens of levels", async () => {
    const columns = Array.from({ length: 300 }, (_, index) => `${index} AS c${index}`).join(", ");
    expect(await value(`SELECT ${columns} FOR XML RAW`)).toContain(' c298="298" c299="299"/>');
    expect(await value(`SELECT ${columns} FOR JSON PATH`)).toContain('"c298":298,"c299":299}');
    const path = Array.from({ length: 60 }, () => "a").join("/");
    expect(await value(`SELECT 1 AS [${path}] FOR XML PATH('')`)).toBe(`${"<a>".repeat(60)}1${"</a>".repeat(60)}`);
    const json = await value(`SELECT 1 AS [${path.replaceAll("/", ".")}] FOR JSON PATH`);
    expect(json).toBe(`[${'{"a":'.repeat(60)}1${"}".repeat(60)}]`);
  });

  test("functions and views contain it", async () => {
    const created = [
      "CREATE FUNCTION dbo.OrderList(@person int) RETURNS nvarchar(max) AS BEGIN RETURN (SELECT ',' + CAST(Id AS varchar(9)) FROM Orders WHERE Person = @person ORDER BY Id FOR XML PATH('')) END",
      "CREATE VIEW dbo.Lists AS SELECT p.Id, (SELECT o.Id FROM Orders o WHERE o.Person = p.Id ORDER BY o.Id FOR JSON PATH) AS Orders FROM People p",
    ];
    for (const sql of created) expect((await client.batch(sql)).messages).toEqual([]);
    expect(await value("SELECT dbo.OrderList(1) AS a")).toBe(",10,11");
    expect(await value("SELECT Orders FROM Lists WHERE Id = 1")).toBe('[{"Id":10},{"Id":11}]');
    const { rows } = await tds.superuser.query("SELECT orders FROM dbo.lists WHERE id = 2");
    expect(rows).toEqual([{ orders: '[{"Id":12}]' }]);
  });
});
