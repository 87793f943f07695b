import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { destinations } from "../destinations/destinations.ts";
import { configurationSchema } from "./configuration-schema.ts";

const ajv = new Ajv2020({ formats: { uri: true } });
const validator = (type: keyof typeof destinations) => ajv.compile(configurationSchema(destinations[type], false));
const change = (type: keyof typeof destinations) => ajv.compile(configurationSchema(destinations[type], true));

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["prometheus_remote_write", { url: "https://x/w" },                                   true],
  ["prometheus_remote_write", { url: "https://x/w", username: "u", password: "p" },     true],
  ["prometheus_remote_write", { url: "https://x/w", bearer_token: null },               true],
  ["prometheus_remote_write", {},                                                       false],
  ["prometheus_remote_write", { url: null },                                            false],
  ["prometheus_remote_write", { url: "https://x/w", other: 1 },                         false],
  ["prometheus_remote_write", { url: "https://x/w", tls_skip_verify: "yes" },           false],
  ["otlp",                    { endpoint: "https://x/?a=b" },                           false],
  ["otlp",                    { endpoint: "https://x/#a" },                             false],
  ["prometheus_remote_write", { url: "ftp://x/" },                                      false],
  ["prometheus_remote_write", { url: `https://x/${"a".repeat(2_048)}` },                false],
  ["prometheus_remote_write", { url: "https://x/w", bearer_token: "a\r\nX-Evil: 1" },   false],
  ["otlp",                    { endpoint: "https://x/", headers: { a: "b" } },          true],
  ["otlp",                    { endpoint: "https://x/", headers: { a: "b\nc" } },       false],
  ["otlp",                    { endpoint: "https://x/", headers: { "a b": "c" } },      false],
  ["otlp",                    { endpoint: "https://x/", timeout_seconds: 61 },          false],
  ["otlp",                    { endpoint: "https://x/", protocol: "tcp" },              false],
  ["search_cluster",          { endpoint: "https://x/", index_prefix: "Upper" },        false],
] as const)("a new configuration of %s: %j", (type, configuration, fits) => {
  expect(validator(type)(configuration)).toBe(fits);
});

test("a URL that needs the path of its receiver", () => {
  const fits = validator("prometheus_remote_write");
  for (const url of ["https://x", "https://x/", "https://x/?a=b", "https://x?a=/b"]) expect(fits({ url })).toBe(false);
  for (const url of ["https://x/a", "HTTP://x:1/a/?b=c"]) expect(fits({ url })).toBe(true);
});

test("a change has only the changed keys, and null removes a key", () => {
  const fits = change("prometheus_remote_write");
  expect(fits({})).toBe(true);
  expect(fits({ password: null, username: null })).toBe(true);
  expect(fits({ other: null })).toBe(false);
});
