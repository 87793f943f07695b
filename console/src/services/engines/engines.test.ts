import { expect, test } from "vitest";
import type { Connection } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { consoleEngineOf } from "./engines.ts";

const connection = partial<Connection>({ host: "db.example", port: 1, user: "app", database: "main", uri: "the uri" });

test.each(["postgresql", "mysql", "valkey", "tsql", "kafka", "mongodb", "opensearch", "one of a later version"])(
  "%s has its URI, and no snippet has a password",
  (type) => {
    const snippets = consoleEngineOf(type).snippets(connection);
    expect(snippets[0]).toEqual({ title: "URI", text: "the uri" });
    for (const { text } of snippets.slice(1)) expect(text).toContain("db.example");
    expect(new Set(snippets.map(({ title }) => title)).size).toBe(snippets.length);
  },
);
