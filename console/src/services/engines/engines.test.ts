import { expect, test } from "vitest";
import type { Connection } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { consoleEngineOf } from "./engines.ts";

const connection = partial<Connection>({ host: "db.example", port: 1, user: "app", database: "main", uri: "the uri" });

test.each([
  ["mysql", "the uri&ssl-ca=ca.pem"],
  ["tsql", "the uri&certificate=ca.pem"],
])("the URI of %s has the certificate authority", (type, text) =>
  expect(consoleEngineOf(type).snippets(connection)[0]?.text).toBe(text),
);

test.each(["postgresql", "mysql", "valkey", "tsql", "kafka", "mongodb", "opensearch", "one of a later version"])(
  "%s has its URI, and no snippet has a password",
  (type) => {
    const snippets = consoleEngineOf(type).snippets(connection);
    expect(snippets[0]).toEqual({ title: "URI", text: expect.stringMatching(/^the uri/) });
    for (const { text } of snippets.slice(1)) expect(text).toContain("db.example");
    expect(new Set(snippets.map(({ title }) => title)).size).toBe(snippets.length);
  },
);

test.each([
  ["postgresql", "postgres://app@db?sslmode=verify-full", "postgres://app@db?sslmode=verify-full&sslrootcert=ca.pem"],
  ["mongodb", "mongodb://app@db/?tls=true", "mongodb://app@db/?tls=true&tlsCAFile=ca.pem"],
])("the URI of %s names the file of the certificate authority, as the other snippets do", (type, uri, text) =>
  expect(consoleEngineOf(type).snippets({ ...connection, uri })[0]?.text).toBe(text),
);
