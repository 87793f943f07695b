import type { Connection } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { mysql } from "./mysql.ts";
import { mysqlSnippets } from "./mysql-snippets.ts";

test("a session verifies the name, and has its password in a file", () => {
  const connection = { host: "shop.example", port: 3306, database: "defaultdb", ca_certificate: "PEM" } as Connection;
  const files = new Map<string, string>();
  const write = (name: string, content: string) => {
    files.set(name, content);
    return `/private/${name}`;
  };
  const login = { user: "app_user", password: 'a"b\\c' };
  expect(mysql.session(connection, login, { write })).toEqual({
    args: [
      "--defaults-file=/private/my.cnf",
      "--protocol=TCP",
      "-h",
      "shop.example",
      "-P",
      "3306",
      "--ssl-mode=VERIFY_IDENTITY",
      "--ssl-ca=/private/ca.pem",
      "defaultdb",
    ],
    environment: {},
  });
  expect(files.get("my.cnf")).toBe('[client]\nuser="app_user"\npassword="a\\"b\\\\c"\n');
});

const values = {
  host: "shop-abc.local.holdfast.test",
  address: "127.77.0.1",
  port: 3306,
  user: "app_user",
  database: `it's $x #{y} \\ "z"`,
  caFile: "/ca.pem",
  passwordFile: "/password",
  hostsFile: "/hosts",
  conninfo: "",
};

test.each([
  ["python", `database="it's $x #{y} \\\\ \\"z\\"",`, `create_connection(("127.77.0.1", 3306))`],
  ["node", `database: "it's $x #{y} \\\\ \\"z\\"",`, `stream: connect(3306, "127.77.0.1"),`],
  ["go", `config.DBName = "it's $x #{y} \\\\ \\"z\\""`, `"tcp", "127.77.0.1:3306"`],
  ["java", `setCatalog("it's $x #{y} \\\\ \\"z\\"");`, `"jdk.net.hosts.file", "/hosts"`],
] as const)("a program in %s connects to the address, and quotes names", (language, literal, address) => {
  const program = mysqlSnippets[language]?.(values);
  expect(program).toContain(literal);
  expect(program).toContain(address);
  expect(program).toContain('"shop-abc.local.holdfast.test"');
  expect(program).not.toContain("undefined");
});
