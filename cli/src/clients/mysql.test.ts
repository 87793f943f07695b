import type { Connection } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { mysql } from "./mysql.ts";

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
