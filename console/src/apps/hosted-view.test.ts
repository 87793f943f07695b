import { partial } from "@holdfast/testing/partial.ts";
import type { App, AppDeployment, AppNode, Catalog, HostedApp, ManagedService } from "@holdfast/sdk/responses.ts";
import { describe, expect, test } from "vitest";
import {
  attachableTo,
  attachmentOf,
  changeRefusal,
  deploymentInputOf,
  deploymentOf,
  deploymentState,
  environmentFault,
  environmentOf,
  environmentText,
  isSettled,
  machineState,
  newAppOf,
  newAppSize,
  problemOf,
  secretsChangeOf,
  secretsFault,
  wayBack,
  withoutValues,
} from "./hosted-view.ts";

const hosted = partial<HostedApp>({
  image_ref: "shop:1",
  port: 8080,
  command: [],
  env: { LOG_LEVEL: "info", A: "b=c" },
  secret_env_names: ["KEY"],
  health_check_path: null,
});

describe("variables", () => {
  test("text and variables are the same, also with = in a value", () => {
    expect(environmentText(hosted.env)).toBe("A=b=c\nLOG_LEVEL=info");
    expect(environmentOf("A=b=c\n\n LOG_LEVEL=info")).toEqual(hosted.env);
  });

  test.each([
    ["A=1\nB=", undefined],
    ["", undefined],
    ["A", "A has no value: write A=value."],
    ["A=1\nA=2", "A is set twice."],
  ])("the text %j has the fault %s", (text, fault) => expect(environmentFault(text)).toBe(fault));

  const key = { name: "KEY", value: "" };
  const other = { name: "OTHER", value: "x" };
  test.each([
    [[key], {}, undefined],
    [[], { unset_secret_env: ["KEY"] }, undefined],
    [[{ ...key, value: "new" }], { set_secret_env: { KEY: "new" } }, undefined],
    [[key, { ...other, name: " OTHER " }], { set_secret_env: { OTHER: "x" } }, undefined],
    [[other], { set_secret_env: { OTHER: "x" }, unset_secret_env: ["KEY"] }, undefined],
    [[key, { ...other, value: "" }], {}, "Enter the value of OTHER."],
    [[key, { ...key, value: "x" }], { set_secret_env: { KEY: "x" } }, "KEY is set twice."],
    [[key, { name: " ", value: "" }], {}, undefined],
  ])("the secret variables %j are sent as %j, with the fault %s", (variables, sent, fault) => {
    expect(secretsChangeOf(variables, ["KEY"])).toEqual(sent);
    expect(secretsFault(variables, ["KEY"])).toBe(fault);
  });
});

describe("a deployment", () => {
  const input = deploymentInputOf(hosted);

  test("an unchanged form deploys the image alone", () =>
    expect(deploymentOf(input, hosted)).toEqual({ image_ref: "shop:1" }));

  test.each([
    [{ image: "shop:2 " }, { image_ref: "shop:2" }],
    [{ port: "80" }, { port: 80 }],
    [{ command: "node\nmain.js" }, { command: ["node", "main.js"] }],
    [{ env: "" }, { env: {} }],
    [{ healthPath: "/health" }, { health_check_path: "/health" }],
    [{ secrets: [{ name: "KEY", value: "x" }] }, { set_secret_env: { KEY: "x" } }],
  ])("the input %j changes %j", (change, request) =>
    expect(deploymentOf({ ...input, ...change }, hosted)).toEqual({ image_ref: "shop:1", ...request }),
  );

  test("an empty path ends the check by a path", () => {
    const before = { ...hosted, health_check_path: "/health" };
    expect(deploymentOf({ ...deploymentInputOf(before), healthPath: "" }, before).health_check_path).toBeNull();
  });

  test.each([
    ["succeeded", true, "serves", "good"],
    ["deploying", false, "deploying", "busy"],
    ["failed", false, "failed", "bad"],
    ["succeeded", false, "succeeded", "none"],
  ] as const)("one that is %s, and serves: %s, is %s", (status, serves, text, tone) =>
    expect(deploymentState(partial<AppDeployment>({ status, serves }))).toEqual({ text, tone }),
  );
});

test("a new app has an image only if the platform hosts it", () => {
  const input = {
    ...deploymentInputOf(null),
    name: "shop",
    home: "",
    plan: "",
    storageGb: "10",
    replicas: "2",
    image: "shop:1",
  };
  expect(newAppOf({ ...input, hosting: "external" })).toEqual({ name: "shop" });
  const secrets = [{ name: "KEY", value: "x" }];
  expect(newAppOf({ ...input, secrets, hosting: "platform" }).secret_env).toEqual({ KEY: "x" });
  expect(newAppOf({ ...input, hosting: "platform" })).toEqual({
    name: "shop",
    image_ref: "shop:1",
    port: 8080,
    command: [],
    env: {},
    storage_size_gb: 10,
    replicas: 2,
  });
});

describe("the problem of an app", () => {
  const serves = { serving_deployment_number: 1, serving_image_ref: "shop:1" };
  const none = { serving_deployment_number: null, serving_image_ref: null };
  const failed = { failed_deployment_number: 2, failed_image_ref: "shop:2" };
  const well = { failed_deployment_number: null, failed_image_ref: null };
  const running = { status: "running" } as const;
  test.each([
    [
      "Running",
      null,
      { ...serves, ...failed },
      "bad",
      "Deployment 2 (shop:2) failed",
      /^Deployment 1 \(shop:1\) serves on/,
    ],
    [
      "Error",
      null,
      { ...none, ...failed },
      "bad",
      "Deployment 2 (shop:2) failed",
      /^Nothing serves, so clients get 503/,
    ],
    ["Error", null, { ...serves, ...well }, "bad", "The app has failed", /^Clients get 503/],
    ["Error", null, { ...serves, ...failed }, "bad", "The app has failed", /^Clients get 503/],
    ["Running", running, { ...serves, ...well }, "warn", "The deployment is delayed", /^It is tried again/],
    ["Deploying", running, { ...none, ...well }, "warn", "The deployment is delayed", /^It is tried again/],
    ["Running", null, { ...serves, ...well }, "warn", "The app is not healthy", /its log has the cause/],
  ] as const)("one in %s with the operation %j and %j is %s: %s", (status, operation, numbers, tone, title, advice) => {
    const app = partial<App>({ status, operation });
    const problem = problemOf(app, partial<HostedApp>({ ...numbers, reason: "Why.", last_lines: [] }));
    expect(problem).toMatchObject({ tone, title, reason: "Why.", advice: expect.stringMatching(advice) });
    expect(problemOf(app, partial<HostedApp>({ ...numbers, reason: null }))).toBeUndefined();
  });

  test("the way back from a serving deployment is the newest earlier one of another image", () => {
    const entry = (number: number, status: AppDeployment["status"], digest: string, isServing = false) =>
      partial<AppDeployment>({ number, status, image_digest: digest, serves: isServing });
    const list = [
      entry(5, "failed", "c"),
      entry(4, "succeeded", "b", true),
      entry(3, "succeeded", "b"),
      entry(2, "failed", "x"),
      entry(1, "succeeded", "a"),
    ];
    expect(wayBack(list)?.number).toBe(1);
    expect(wayBack(list.slice(0, 3))).toBeUndefined();
    expect(wayBack([entry(1, "failed", "a")])).toBeUndefined();
  });

  test.each([
    ["Starting", null, "Error", "no release", "none"],
    ["Starting", null, "Deploying", "Starting", "busy"],
    ["Starting", "d", "Error", "Starting", "busy"],
    ["Running", "d", "Running", "Running", "good"],
  ] as const)("a machine that is %s with the release %s of an app in %s is %s", (status, release, of, text, tone) =>
    expect(machineState(partial<AppNode>({ status, deployment_id: release }), partial<App>({ status: of }))).toEqual({
      text,
      tone,
    }),
  );
});

test.each([
  [null, null, undefined],
  [{ kind: "project", id: "p" }, null, "The app belongs to a project, which changes it."],
  [null, { status: "running" }, "Another operation is in progress."],
  [null, { status: "completed" }, undefined],
] as const)("an app of %j with the operation %j: %s", (managed_by, operation, refusal) =>
  expect(changeRefusal(partial<App>({ managed_by, operation }))).toBe(refusal),
);

describe("attachments", () => {
  const services = [
    partial<ManagedService>({ id: "p", name: "orders", database_type: "postgresql" }),
    partial<ManagedService>({ id: "v", name: "cache", database_type: "valkey" }),
  ];
  const files = [partial<ManagedService>({ id: "f", name: "media", database_type: "files" })];
  const outside = partial<App>({ id: "a", name: "shop", hosted: null, attachments: [] });
  const inside = partial<App>({ id: "b", name: "api", hosted: { port: 8080 }, attachments: [] });
  const ids = (app: App) => attachableTo(app, services, files, [outside, inside]).map(({ id }) => id);

  test("an app outside gets PostgreSQL and files services, a hosted one all services and other hosted apps", () => {
    expect(ids(outside)).toEqual(["p", "f"]);
    expect(ids(inside)).toEqual(["p", "v", "f"]);
    expect(ids({ ...inside, id: "c" })).toEqual(["p", "v", "f", "b"]);
  });

  test("an attached files service is not offered again, another database of a service is", () => {
    const attachments = [
      { kind: "files", service_id: "f" },
      { kind: "postgresql", service_id: "p" },
    ];
    expect(ids(partial<App>({ ...inside, attachments }))).toEqual(["p", "v"]);
  });

  const input = { database: "shop", prefix: "", access: "readonly" };
  test.each([
    ["postgresql", { service_id: "x", database_name: "shop" }],
    ["files", { service_id: "x", access: "readonly" }],
    ["app", { service_id: "x" }],
  ])("of the input, one to %s has %j", (kind, request) =>
    expect(attachmentOf({ id: "x", title: "", kind }, input)).toEqual(request),
  );
});

test("the cost of a new app has its disks, as that of a running one", () => {
  const catalog = partial<Catalog>({
    currency: "EUR",
    plans: [
      { plan_name: "vm", vcpu: 1, memory_gb: 1, monthly_cost: 1, kind: "vm" },
      { plan_name: "tier-1", vcpu: 1, memory_gb: 1, monthly_cost: 15, kind: "container" },
    ],
    storage_tiers: [
      { storage_tier: "maxiops", medium: "SSD", use: "", monthly_cost_per_gb: 0.2 },
      { storage_tier: "hdd", medium: "HDD", use: "", monthly_cost_per_gb: 0.1 },
    ],
  });
  expect(newAppSize(catalog, { plan: "", storageGb: "10", replicas: "1" })).toEqual({
    machine: "tier-1, 10 GB maxiops",
    cost: "€17.00",
  });
  expect(newAppSize(catalog, { plan: "tier-1", storageGb: "10", replicas: "3" }).cost).toBe("€51.00");
  expect(newAppSize(catalog, { plan: "gone", storageGb: "10", replicas: "1" }).cost).toBe("unknown");
});

test.each([
  [1, null, true],
  [2, 2, true],
  [3, 2, false],
])("the settings of an app with deployment %s, of which %s serves, are settled: %s", (number, serving, settled) =>
  expect(isSettled({ deployment_number: number, serving_deployment_number: serving })).toBe(settled),
);

test("the values of secrets that are set leave the form, and others stay", () => {
  const variables = [
    { name: "KEY ", value: "a" },
    { name: "NEW", value: "b" },
  ];
  expect(withoutValues(variables, ["KEY"])).toEqual([
    { name: "KEY ", value: "" },
    { name: "NEW", value: "b" },
  ]);
});
