import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { CreateAppRequestSchema, UpdateAppRequestSchema } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { describe, expect, test } from "vitest";
import { defaultCatalog } from "#catalog/catalog.ts";
import { changedSettings, newSettings, refuseHostedFields, sizeOf } from "./hosting-request.ts";

const context = {
  appId: "a",
  organizationId: "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90",
  registry: "127.0.0.1:8452",
  sealer: {
    seal: (text: string, label: string) => `sealed for ${label}: ${text.length}`,
    open: (text: string) => text,
  },
  prefixes: ["ORDERS"],
};

type NewApp = MessageInitShape<typeof CreateAppRequestSchema>;
const request = (fields: NewApp) => create(CreateAppRequestSchema, { name: "shop", imageRef: "shop:1", ...fields });
const settingsOf = (fields: NewApp = {}) => newSettings(request(fields), "shop:1", context);

function faultsOf(run: () => unknown): readonly (readonly [string, string])[] {
  try {
    run();
  } catch (error) {
    return error instanceof HoldfastError ? (error.errors ?? []).map(({ field, code }) => [field, code] as const) : [];
  }
  return [];
}

test("omitted settings have defaults, and secret values are sealed for the app", () => {
  expect(settingsOf({ secretEnv: { TOKEN: "hidden" } })).toEqual({
    imageRef: "shop:1",
    command: [],
    environment: {},
    sealedEnvironment: `sealed for /holdfast/v1/app/a: ${JSON.stringify({ TOKEN: "hidden" }).length}`,
    secretNames: ["TOKEN"],
    port: 8_080,
    healthCheckPath: "",
    startTimeoutSeconds: 60,
    drainSeconds: 30,
  });
});

test("a change replaces the named fields and no others", () => {
  const before = settingsOf({ env: { A: "1" }, secretEnv: { B: "2" }, port: 3_000, healthCheckPath: "/health" });
  const change = create(UpdateAppRequestSchema, { env: { C: "3" }, port: 9_000 });
  expect(changedSettings(before, change, ["env", "health_check_path"], context)).toEqual({
    ...before,
    environment: { C: "3" },
    healthCheckPath: "",
  });
  const secrets = create(UpdateAppRequestSchema, { secretEnv: {} });
  expect(changedSettings(before, secrets, ["secret_env"], context)).toMatchObject({
    sealedEnvironment: "",
    secretNames: [],
  });
  const port = create(UpdateAppRequestSchema, { port: 7_443 });
  expect(faultsOf(() => changedSettings(before, port, ["port"], context))).toEqual([["port", "invalid_value"]]);
  expect(faultsOf(() => settingsOf({ port: 7_443 }))).toEqual([["port", "invalid_value"]]);
  const twice = create(UpdateAppRequestSchema, { env: { B: "1" } });
  expect(faultsOf(() => changedSettings(before, twice, ["env"], context))).toEqual([["secret_env", "duplicate"]]);
});

test("secrets of 32 KiB each and 128 KiB together are accepted", () => {
  expect(settingsOf({ secretEnv: texts(4, 32_760) })).toMatchObject({ secretNames: ["A0", "A1", "A2", "A3"] });
});

test("the times of a release change alone", () => {
  const before = settingsOf({ startTimeoutSeconds: 10, drainSeconds: 5 });
  const change = create(UpdateAppRequestSchema, { startTimeoutSeconds: 120, drainSeconds: 0 });
  expect(changedSettings(before, change, ["start_timeout_seconds", "drain_seconds"], context)).toEqual({
    ...before,
    startTimeoutSeconds: 120,
    drainSeconds: 0,
  });
  expect(changedSettings(before, change, ["drain_seconds"], context)).toEqual({ ...before, drainSeconds: 0 });
});

/** Variables with values of this length. */
function texts(count: number, length: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`A${at}`, "x".repeat(length)]));
}

describe("a change of some variables", () => {
  const open = { ...context, sealer: { seal: (text: string) => text, open: (text: string) => text } };
  const before = newSettings(
    request({ env: { A: "1", B: "2" }, secretEnv: { K1: "s1", K2: "s2", K3: "s3" } }),
    "shop:1",
    open,
  );
  const after = (fields: MessageInitShape<typeof UpdateAppRequestSchema>) => {
    const paths = Object.keys(fields).map((name) => name.replaceAll(/[A-Z]/g, (each) => `_${each.toLowerCase()}`));
    return changedSettings(before, create(UpdateAppRequestSchema, fields), paths, open);
  };

  test("sets and removes the named ones, secret ones too, and leaves the others", () => {
    const changed = after({
      setEnv: { B: "3", C: "4" },
      unsetEnv: ["A"],
      setSecretEnv: { K1: "new", K4: "" },
      unsetSecretEnv: ["K2"],
    });
    expect(changed).toEqual({
      ...before,
      environment: { B: "3", C: "4" },
      secretNames: ["K1", "K3", "K4"],
      sealedEnvironment: JSON.stringify({ K1: "new", K3: "s3", K4: "" }),
    });
    expect(after({ setEnv: { C: "4" } }).sealedEnvironment).toBe(before.sealedEnvironment);
    expect(after({ unsetSecretEnv: ["K1", "K2", "K3"] })).toMatchObject({ secretNames: [], sealedEnvironment: "" });
    const moved = after({ unsetEnv: ["A"], setSecretEnv: { A: "hidden" } });
    expect([moved.environment, moved.secretNames]).toEqual([{ B: "2" }, ["K1", "K2", "K3", "A"]]);
    expect(after({ secretEnv: { K9: "9" } }).secretNames).toEqual(["K9"]);
  });

  const many = (from: number) => Object.fromEntries(Array.from({ length: 255 }, (_, at) => [`V${from + at}`, ""]));
  test.each([
    [{ unsetEnv: ["Z"] }, "unset_env", "unknown"],
    [{ unsetSecretEnv: ["A"] }, "unset_secret_env", "unknown"],
    [{ setEnv: { A: "1" }, unsetEnv: ["A"] }, "unset_env", "duplicate"],
    [{ setEnv: many(0) }, "set_env", "too_many"],
    [{ setSecretEnv: many(0) }, "set_secret_env", "too_many"],
    [{ setSecretEnv: { A: "2" } }, "secret_env", "duplicate"],
    [{ setEnv: { ORDERS_URL: "x" } }, "env", "env_name_reserved"],
  ])("%j is refused", (fields, field, code) => {
    expect(faultsOf(() => after(fields))).toEqual([[field, code]]);
  });
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["a variable in both",       { env: { A: "1" }, secretEnv: { A: "2" } },  "secret_env", "duplicate"],
  ["a zero byte",              { env: { A: "\0" } },                       "env",        "invalid_value"],
  ["too many bytes",           { env: { A: "x".repeat(32_768) } },         "env",        "too_long"],
  ["too many secret bytes",    { secretEnv: texts(5, 32_000) },            "secret_env", "too_long"],
] as const)("%s is refused", (_, fields, field, code) => {
  expect(faultsOf(() => settingsOf(fields))).toEqual([[field, code]]);
});

test("an image of another registry is refused", () => {
  expect(faultsOf(() => newSettings(request({}), "docker.io/library/nginx", context))).toEqual([
    ["image_ref", "invalid_value"],
  ]);
});

test("the size has the catalog's defaults, and only its values", () => {
  expect(sizeOf(request({}), defaultCatalog)).toEqual({
    planName: "tier-1",
    storageTier: "maxiops",
    zone: "local",
    storageSizeGb: 10,
    replicas: 1,
  });
  const unknown = { planName: "tier-1-vm", storageTier: "tape", zone: "moon" };
  expect(faultsOf(() => sizeOf(request(unknown), defaultCatalog)).map(([field]) => field)).toEqual([
    "plan_name",
    "storage_tier",
    "zone",
  ]);
});

test("an app without an image has no settings of hosted apps", () => {
  const external = create(CreateAppRequestSchema, { name: "shop", homeUrl: "https://shop.example" });
  expect(faultsOf(() => refuseHostedFields(external))).toEqual([]);
  const fields = { name: "shop", env: { A: "1" }, drainSeconds: 0, command: ["x"] };
  expect(faultsOf(() => refuseHostedFields(create(CreateAppRequestSchema, fields)))).toEqual([
    ["command", "image_ref_required"],
    ["env", "image_ref_required"],
    ["drain_seconds", "image_ref_required"],
  ]);
});

test("a variable that an attachment sets is refused, in each field", () => {
  expect(faultsOf(() => settingsOf({ env: { DATABASE_URL: "x", ORDERS_URL: "x", OTHER_URL: "x" } }))).toEqual([
    ["env", "env_name_reserved"],
    ["env", "env_name_reserved"],
  ]);
  expect(faultsOf(() => settingsOf({ secretEnv: { S3_SECRET: "x" } }))).toEqual([["secret_env", "env_name_reserved"]]);
});
