import { randomBytes } from "node:crypto";
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { createCursors } from "@holdfast/controller/kernel/page/cursor.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { createControlApi } from "@holdfast/controller/operator/control/control-api.ts";
import { entriesMaxOf } from "@holdfast/gateway/json/entries-max.ts";
import { rulesOf } from "@holdfast/gateway/json/field-rules.ts";
import { inlineValues } from "@holdfast/gateway/json/parse-json.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { organizationServices, platformServices } from "@holdfast/testing/api/api-methods.ts";
import { startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";
import { mergeTables } from "@holdfast/testing/contract/contracts.ts";
import type { CommandLine } from "@holdfast/testing/platform/command-line.ts";
import { createOperatorCommandLine } from "@holdfast/testing/platform/operator-command-line.ts";

const methods = [...organizationServices, ...platformServices].flatMap((service) => service.methods);

test.each(methods.filter(({ output }) => "nextCursor" in output.field).map((method) => [String(method), method]))(
  "%s has a limit and a cursor",
  (_, { input }) => {
    const paging = input.field.page?.message ?? input;
    expect(Object.keys(paging.field)).toEqual(expect.arrayContaining(["limit", "cursor"]));
  },
);

/** Repeated members of responses without pages, and their bounds. */
const boundsWithoutPages = mergeTables(({ listBounds }) => [listBounds]);

test("every other repeated member of a response is bounded", () => {
  const found = new Set<string>();
  const seen = new Set<DescMessage>();
  function walk(message: DescMessage): void {
    if (seen.has(message) || message.typeName.startsWith("google.protobuf.")) return;
    seen.add(message);
    const isPage = "nextCursor" in message.field;
    for (const field of message.fields) {
      const several = field.fieldKind === "list" || field.fieldKind === "map";
      if (several && !isPage) found.add(String(field).replace("field ", ""));
      if (field.message !== undefined) walk(field.message);
    }
  }
  for (const { output } of methods) walk(output);
  expect([...found].sort()).toEqual(Object.keys(boundsWithoutPages).sort());
});

test("no request may have more entries than the limit of values in a body", () => {
  // Methods with raw values admit more, and are parsed elsewhere.
  const entriesOf = (field: DescField, within: readonly DescMessage[]): number => {
    if (rulesOf(field).rawJson) return Number.NEGATIVE_INFINITY;
    const each = 1 + (field.message === undefined ? 0 : several(field.message, within));
    return field.fieldKind === "list" || field.fieldKind === "map" ? entriesMaxOf(field) * each : each;
  };
  const several = (message: DescMessage, within: readonly DescMessage[] = []): number =>
    within.includes(message) || message.typeName.startsWith("google.protobuf.")
      ? 1
      : message.fields.reduce((sum, field) => sum + entriesOf(field, [...within, message]), 0);
  expect(methods.filter(({ input }) => several(input) > inlineValues).map(String)).toEqual([]);
});

describe("lists of operators that are complete in memory", () => {
  const ids = Array.from({ length: 450 }, (_, at) => `c-${String(at).padStart(3, "0")}`);
  const kinds = ["clock", "maintenance", "restored"];
  const never = () => {
    throw new Error("a list changes nothing");
  };
  const store = { usedBytes: 1, quotaBytes: 2 };
  const control = createControlApi({
    members: () => ids.toReversed().map((id) => ({ id, address: `${id}:1`, startedAt: 0, draining: false })),
    sessions: () => [["m-1", { controllerId: "c-000" }]],
    automationPauses: {
      list: () => kinds.toReversed().map((kind) => ({ kind, reason: "because", since: 0, until: null })),
      set: never,
      release: never,
    },
    clock: { now: () => 0, monotonicMs: () => 0 },
    cursors: createCursors(createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) })),
    space: { stores: async () => ["b", "a"].map((name) => ({ ...store, name: `etcd ${name}` })), free: never },
    historySpace: { measure: async () => ({ ...store, name: "history" }) },
    controllerId: "c-000",
    reconcilers: () => [],
    controllerReconcilers: async () => ({ reconcilers: [], unreachable: [] }),
    begin: never,
    auditedActs: { act: never },
    drain: never,
    snapshot: never,
  });
  let gateway: TestGateway;
  let shell: CommandLine;
  beforeAll(async () => {
    gateway = await startTestGateway([control]);
    shell = createOperatorCommandLine(gateway);
  });
  afterAll(async () => {
    shell?.remove();
    await gateway?.close();
  });

  const send = (method: string, page: object) =>
    gateway.call("POST", `/holdfast.admin.v1.ControlService/${method}`, {
      body: { page },
      headers: { "connect-protocol-version": "1" },
    });

  // biome-ignore format: a table
  test.each([
    ["ListControllers", "controllers", "id",   200, ids,   [200, 200, 50]],
    ["ListControllers", "controllers", "id",   0,   ids,   [50, 50, 50, 50, 50, 50, 50, 50, 50]],
    ["ListHolds",       "holds",       "kind", 2,   kinds, [2, 1]],
    ["ListHolds",       "holds",       "kind", 3,   kinds, [3]],
    ["ListStores",      "stores",      "name", 2,   ["etcd a", "etcd b", "history"], [2, 1]],
  ])("%s has pages: %s by %s, %i concurrently", async (method, plural, key, limit, all, lengths) => {
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const { status, json } = await send(method, { limit, ...(cursor !== undefined && { cursor }) });
      expect(status).toBe(200);
      pages.push(json[plural].map((entry: Record<string, string>) => entry[key]));
      cursor = json.nextCursor;
    } while (cursor !== undefined);
    expect(pages.map(({ length }) => length)).toEqual(lengths);
    expect(pages.flat()).toEqual(all);
  });

  test("a page is never larger than 200, and a cursor is for its own list", async () => {
    expect((await send("ListControllers", { limit: 201 })).status).toBe(400);
    const { json } = await send("ListControllers", { limit: 1 });
    expect((await send("ListHolds", { cursor: json.nextCursor })).status).toBe(400);
  });

  test("the command line follows the pages", async () => {
    const { code, stdout } = await shell.runHere(["--output", "json", "admin", "controllers"]);
    expect(code).toBe(0);
    expect((JSON.parse(stdout) as { id: string }[]).map(({ id }) => id)).toEqual(ids);
    const some = await shell.runHere(["admin", "controllers", "--limit", "201"]);
    expect(some.stdout).toMatch(/c-200[^]*These are the first 201 entries; use --limit for more\.\n$/);
    expect(some.stdout).not.toContain("c-201");
    expect((await shell.runHere(["admin", "holds"])).stdout).toMatch(/^KIND[^]*clock[^]*restored/);
  });
});
