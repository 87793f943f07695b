import { expect, test } from "vitest";
import {
  conninfoFormatOf,
  engineClientOf,
  findConninfoFormat,
  snippetLanguagesOf,
  snippetOf,
} from "./engine-clients.ts";

const service = (type: string) => ({ name: "orders", database_type: type });

test("each engine has its own client", () => {
  expect(engineClientOf(service("postgresql")).programs).toEqual(["psql"]);
  expect(engineClientOf(service("mysql")).programs).toEqual(["mysql"]);
  expect(engineClientOf(service("kafka")).programs).toEqual(["kcat", "kafkacat"]);
  expect(engineClientOf(service("valkey")).programs).toEqual(["valkey-cli", "redis-cli"]);
});

// A newer installation may have engines that this release of the program does not support.
test.each(["cassandra", "toString"])("no client is started for %s", (type) => {
  expect(() => engineClientOf(service(type))).toThrow(`orders is ${type}: this version of the program has no client`);
});

test("only PostgreSQL has connection strings, of libpq", () => {
  expect(findConninfoFormat("valkey")).toBeUndefined();
  expect(findConninfoFormat("postgresql")?.example("holdfast x")).toBe('psql "$(holdfast x)"');
  expect(() => conninfoFormatOf(service("valkey"))).toThrow(
    "orders is valkey: only postgresql has connection strings of libpq",
  );
});

test("a language without a program for the engine is refused with those that have one", () => {
  expect(snippetLanguagesOf("mysql")).toEqual(["node", "python", "go", "java"]);
  expect(() => snippetOf(service("mysql"), "php")).toThrow(
    "orders is mysql: --snippet has programs in node, python, go, java for it",
  );
  expect(() => snippetOf(service("valkey"), "php")).toThrow(
    "orders is valkey: --snippet has programs for mongodb, mysql, opensearch, postgresql only",
  );
});
