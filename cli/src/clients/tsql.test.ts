import type { Connection } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { tsql } from "./tsql.ts";

test("a session verifies the name, and its password is neither an argument nor in a file", () => {
  const connection = partial<Connection>({
    host: "erp.example",
    port: 1433,
    database: "defaultdb",
    ca_certificate: "PEM",
  });
  const files = new Map<string, string>();
  const write = (name: string, content: string) => {
    files.set(name, content);
    return `/private/${name}`;
  };
  const session = tsql.session(connection, { user: "app_user", password: "a secret" }, { write });
  expect(session).toEqual({
    args: ["-S", "service", "-U", "app_user", "-D", "defaultdb", "-P", "-"],
    environment: { FREETDSCONF: "/private/freetds.conf" },
    input: "a secret\n",
  });
  const settings = files.get("freetds.conf") ?? "";
  for (const line of ["host = erp.example", "port = 1433", "encryption = require", "check certificate hostname = yes"])
    expect(settings.split("\n")).toContain(line);
  expect([...files.values()].join()).not.toContain("a secret");
});
