import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { destinations } from "../destinations/destinations.ts";
import { metricsExportKind } from "../metrics-export.ts";
import { changedConfiguration, newConfiguration } from "./changed-configuration.ts";
import { secretMask } from "#kernel/secrets/destined-secret.ts";
import { openConfiguration, splitConfiguration, sealSecrets, maskedConfiguration } from "./secrets.ts";

const faultsOf = (checked: ReturnType<typeof newConfiguration>) =>
  checked.ok ? [] : checked.faults.map(({ key, code }) => `${key} ${code}`);

const { prometheus_remote_write: prometheus, otlp, search_cluster: search, log_aggregator: loki } = destinations;

describe("a new configuration", () => {
  // biome-ignore format: a table, aligned so that it reads as one
  test.each([
    [prometheus, {},                                                             ["url required"]],
    [prometheus, { url: "https://x/write", other: 1, tls_skip_verify: "yes" },        ["other unknown_field", "tls_skip_verify wrong_type"]],
    [prometheus, { url: "https://x/write?a=b", username: "u" },                  ["password required"]],
    [prometheus, { url: "https://x/write", username: "u", password: "p", bearer_token: "t" }, ["bearer_token exclusive"]],
    [prometheus, { url: "https://x/?a=b" },                                      ["url path_required"]],
    [prometheus, { url: "https://x/write", tenant_id: "a b" },                   ["tenant_id invalid_value"]],
    [prometheus, { url: "https://x/write", headers: { host: "y" } },             ["headers invalid_name"]],
    [prometheus, { url: "ftp://x/" },                                            ["url invalid_url"]],
    [prometheus, { url: "https://u:p@x/" },                                      ["url invalid_url"]],
    [prometheus, { url: "https://x/#f" },                                        ["url invalid_url"]],
    [prometheus, { url: `https://x/${"a".repeat(2_048)}` },                      ["url too_long"]],
    [prometheus, { url: "https://x/write", bearer_token: "a\r\nX-Evil: 1" },          ["bearer_token invalid_text"]],
    [prometheus, { url: "https://x/write", bearer_token: secretMask },                      ["bearer_token invalid_value"]],
    [otlp,       { endpoint: "https://x/v1/metrics" },                           ["endpoint invalid_url"]],
    [otlp,       { endpoint: "https://x/?a=b" },                                 ["endpoint invalid_url"]],
    [otlp,       { endpoint: "http://x/" },                                      ["insecure required"]],
    [otlp,       { endpoint: "https://x/", timeout_seconds: 61, protocol: "tcp" }, ["protocol unknown_value", "timeout_seconds out_of_range"]],
    [otlp,       { endpoint: "https://x/", headers: { Host: "y" } },             ["headers invalid_name"]],
    [otlp,       { endpoint: "https://x/", headers: { "content-length": "1" } }, ["headers invalid_name"]],
    [otlp,       { endpoint: "https://x/", headers: { a: "b\nc" } },             ["headers invalid_text"]],
    [loki,       { endpoint: "https://x/", labels: { team: "\u202eshop" } },     ["labels invalid_text"]],
    [otlp,       { endpoint: "https://x/", headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`h${n}`, "v"])) }, ["headers too_many"]],
    [search,     { endpoint: "https://x/", index_prefix: "Upper" },              ["index_prefix invalid_value"]],
    [search,     { endpoint: "https://x/", api_key: "k", username: "u", password: "p" }, ["api_key exclusive"]],
    [loki,       { endpoint: "https://x/", labels: { service_id: "mine" } },     ["labels invalid_name"]],
    [loki,       { endpoint: "https://x/", labels: { "a-b": "c" } },             ["labels invalid_name"]],
  ] as const)("%o %o", (destination, given, faults) => {
    expect(faultsOf(newConfiguration(destination, given))).toEqual(faults);
  });

  test("gets its defaults", () => {
    const checked = newConfiguration(otlp, { endpoint: "https://x/" });
    expect(checked).toEqual({
      ok: true,
      configuration: { endpoint: "https://x/", protocol: "grpc", insecure: false, timeout_seconds: 30 },
    });
  });

  test("an OTLP endpoint with a path gets a fault with the right URL", () => {
    const checked = newConfiguration(otlp, { endpoint: "https://x/base/v1/logs/" });
    expect(checked.ok ? "" : checked.faults[0]?.detail).toContain("https://x/base");
  });
});

test("the message about a mask without a stored secret has the mask and the field, as users see them", () => {
  const checked = newConfiguration(prometheus, { url: "https://x/write", bearer_token: secretMask });
  const changed = changedConfiguration(otlp, { endpoint: "https://x/" }, { headers: { z: secretMask } });
  expect([checked, changed].flatMap((each) => (each.ok ? [] : each.faults.map(({ detail }) => detail)))).toEqual([
    "must not be ********: no bearer_token is stored",
    "must not be ********: no z is stored",
  ]);
});

describe("a changed configuration", () => {
  const stored = { url: "https://old/write", username: "u", password: "p", tls_skip_verify: false };

  test("merges by key, null clears, and a mask keeps the stored secret", () => {
    const same = changedConfiguration(prometheus, stored, { password: secretMask });
    expect(same).toEqual({ ok: true, configuration: stored });
    const other = changedConfiguration(prometheus, stored, { username: null, password: null, bearer_token: "t" });
    expect(other).toEqual({
      ok: true,
      configuration: { url: "https://old/write", bearer_token: "t", tls_skip_verify: false },
    });
  });

  // biome-ignore format: a table, aligned so that it reads as one
  test.each([
    [{ url: "https://evil/write" },                      ["password secret_required"]],
    [{ url: "https://evil/write", password: secretMask },      ["password secret_required"]],
    [{ tls_skip_verify: true },                     ["password secret_required"]],
    [{ username: "somebody" },                      ["password secret_required"]],
    [{ url: "https://new/write", password: "q" },        []],
    [{ url: "https://new/write", password: null, username: null }, []],
  ])("%o needs the secrets again that would be sent elsewhere", (given, faults) => {
    expect(faultsOf(changedConfiguration(prometheus, stored, given))).toEqual(faults);
  });

  test("keeps each masked header", () => {
    const before = { endpoint: "https://x/", headers: { a: "1", b: "2" } };
    const after = changedConfiguration(otlp, before, { headers: { a: secretMask, c: "3" } });
    expect(after).toMatchObject({ ok: true, configuration: { headers: { a: "1", c: "3" } } });
    expect(faultsOf(changedConfiguration(otlp, before, { headers: { z: secretMask } }))).toEqual([
      "headers invalid_value",
    ]);
    expect(
      faultsOf(changedConfiguration(otlp, before, { endpoint: "https://y/", headers: { a: secretMask } })),
    ).toEqual(["headers secret_required"]);
  });
});

/** An integration as it is stored. */
const stored = (spec: object, id = "id") =>
  metricsExportKind.parse(JSON.stringify({ metadata: { id }, spec, status: {} }));

test("secrets sealed by an earlier version can be opened for their target only", () => {
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) });
  const digest = createHash("sha256").update('[["url","https://x/"],["tls_skip_verify",false]]').digest("base64url");
  const sealedSecrets = sealer.seal(
    '{"password":"p"}',
    `${keyOf(metricsExportKind, "id")} prometheus_remote_write ${digest}`,
  );
  const opened = (url: string) =>
    openConfiguration(stored({ configuration: { url, username: "u" }, sealedSecrets }), prometheus, sealer);
  expect(opened("https://x/")).toEqual({ url: "https://x/", username: "u", password: "p" });
  expect(() => opened("https://y/")).toThrow();
});

test("secrets are sealed for the integration and its target", () => {
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) });
  const configuration = { url: "https://x/", bearer_token: "planted-token", tls_skip_verify: false };
  const split = splitConfiguration(prometheus, configuration);
  expect(JSON.stringify(split.configuration)).not.toContain("planted-token");
  const sealedSecrets = sealSecrets("id", prometheus, split, sealer);
  expect(sealedSecrets).not.toContain("planted-token");
  const integration = (configuration: object, id = "id") => stored({ configuration, sealedSecrets }, id);
  expect(openConfiguration(integration(split.configuration), prometheus, sealer)).toEqual(configuration);
  expect(() =>
    openConfiguration(integration({ ...split.configuration, url: "https://y/" }), prometheus, sealer),
  ).toThrow();
  expect(() => openConfiguration(integration(split.configuration, "other"), prometheus, sealer)).toThrow();
  expect(maskedConfiguration(prometheus, configuration)).toEqual({ ...configuration, bearer_token: secretMask });
});
