import type { Connection } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { mongodb } from "./mongodb.ts";

test("a session verifies the server, and its password is in a private file and not an argument", () => {
  const connection = partial<Connection>({
    host: "docs.example",
    port: 27_017,
    database: "defaultdb",
    ca_certificate: "PEM",
  });
  const files = new Map<string, string>();
  const write = (name: string, content: string) => {
    files.set(name, content);
    return `/private/${name}`;
  };
  const session = mongodb.session(connection, { user: "app_user", password: 'a/"secret' }, { write });
  expect(session).toEqual({
    args: ["--nodb", "--quiet", "--eval", 'void load("/private/connect.js")'],
    environment: {},
  });
  const uri =
    "mongodb://app_user:a%2F%22secret@docs.example:27017/defaultdb?tls=true&authSource=admin&tlsCAFile=%2Fprivate%2Fca.pem";
  expect(files.get("connect.js")).toBe(`db = connect("${uri}");\n`);
  expect(files.get("ca.pem")).toBe("PEM");
});

// biome-ignore format: a table
test.each([
  ["a session without arguments", [],                          ["--shell"]],
  ["one with a flag",             ["--norc"],                  ["--shell", "--norc"]],
  ["one with a script",           ["--eval", "db.stats()"],    ["--eval", "db.stats()"]],
  ["one with a script as value",  ["--eval=db.stats()"],       ["--eval=db.stats()"]],
  ["one with a file",             ["report.js"],               ["report.js"]],
  ["one with a file by its flag", ["--json", "-f", "a.js"],    ["--json", "-f", "a.js"]],
])("%s ends after a script alone", (_, args, expected) => {
  expect(mongodb.arguments?.(args)).toEqual(expected);
});
