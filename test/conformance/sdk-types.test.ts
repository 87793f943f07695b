import type { DescMessage } from "@bufbuild/protobuf";
import type { eventDefinitions } from "@holdfast/controller/event/event-types.ts";
import type { ApiKeyService, CreateApiKeyRequestSchema } from "@holdfast/proto/holdfast/v1/api_key_pb.ts";
import type { AuditService, ListAuditLogRequestSchema } from "@holdfast/proto/holdfast/v1/audit_pb.ts";
import type { CatalogService } from "@holdfast/proto/holdfast/v1/catalog_pb.ts";
import type {
  ConfigurationService,
  UpdateConfigurationRequestSchema,
} from "@holdfast/proto/holdfast/v1/configuration_pb.ts";
import type { DatabaseService } from "@holdfast/proto/holdfast/v1/database_pb.ts";
import type {
  CreateDatabaseUserRequestSchema,
  DatabaseUserService,
} from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import type { EventService, ListServiceEventsRequestSchema } from "@holdfast/proto/holdfast/v1/event_pb.ts";
import type {
  CreateManagedServiceRequestSchema,
  ListLogsRequestSchema,
  ListManagedServicesRequestSchema,
  ManagedServiceService,
  UpdateManagedServiceRequestSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { MaintenanceService } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import type { GetMetricsRequestSchema, MetricService } from "@holdfast/proto/holdfast/v1/metric_pb.ts";
import type { OperationService } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import type { OrganizationService } from "@holdfast/proto/holdfast/v1/organization_pb.ts";
import type { CreateTokenRequestSchema, TokenService } from "@holdfast/proto/holdfast/v1/token_pb.ts";
import type { UserService } from "@holdfast/proto/holdfast/v1/user_pb.ts";
import type {
  CreateWebhookRequestSchema,
  UpdateWebhookRequestSchema,
  WebhookService,
} from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { describe, expect, test } from "vitest";
import type * as sdk from "../../sdk/src/index.ts";
import { createClient } from "../../sdk/src/index.ts";
import { findRestMethod, restMethods } from "../support/api-methods.ts";
import type { RestEntry, RestShape } from "../support/rest-types.ts";

type Methods = (typeof ApiKeyService)["method"] &
  (typeof AuditService)["method"] &
  (typeof CatalogService)["method"] &
  (typeof ConfigurationService)["method"] &
  (typeof DatabaseService)["method"] &
  (typeof DatabaseUserService)["method"] &
  (typeof EventService)["method"] &
  (typeof MaintenanceService)["method"] &
  (typeof ManagedServiceService)["method"] &
  (typeof MetricService)["method"] &
  (typeof OperationService)["method"] &
  (typeof OrganizationService)["method"] &
  (typeof TokenService)["method"] &
  (typeof UserService)["method"] &
  (typeof WebhookService)["method"];

const page = { limit: 7, cursor: "c" };
const time = "2026-03-01T12:00:00Z";
const service = { name: "n", database_type: "postgresql", plan_name: "p", storage_size_gb: 1 };
const choices = { version: "17", storage_tier: "s", zone: "z", parameters: {} };
const change = {
  allowed_cidrs: [],
  ttl_hours: 1,
  deletion_protection: true,
  tags: {},
  maintenance_window: { day: "sunday", hour: 3 },
} as const;

/** Each method of the API as the SDK calls it, with every field that it has. */
const calls = {
  createApiKey: (c) => c.apiKeys.create({ name: "n", scopes: [], expires_at: time }),
  listApiKeys: (c) => c.apiKeys.list(page),
  deleteApiKey: (c) => c.apiKeys.delete("i"),
  rotateApiKey: (c) => c.apiKeys.rotate("i", 1),
  listAuditLog: (c) => c.auditLog({ actor: "a", object: "o", action: "x", since: time, until: time }, page),
  getCatalog: (c) => c.catalog(),
  getConfiguration: (c) => c.configuration.get("i"),
  updateConfiguration: (c) => c.configuration.update("i", { work_mem: null }),
  listDatabases: (c) => c.databases.list("i", page),
  createDatabase: (c) => c.databases.create("i", "n"),
  deleteDatabase: (c) => c.databases.delete("i", "n"),
  listDatabaseUsers: (c) => c.databaseUsers.list("i", page),
  createDatabaseUser: (c) => c.databaseUsers.create("i", { username: "u", role: "readonly" }),
  getDatabaseUser: (c) => c.databaseUsers.get("i", "u"),
  deleteDatabaseUser: (c) => c.databaseUsers.delete("i", "u"),
  revealPassword: (c) => c.databaseUsers.revealPassword("i", "u"),
  resetPassword: (c) => c.databaseUsers.resetPassword("i", "u"),
  listEvents: (c) => c.events.list({ type: "service.running", service: "s", since: time }, page),
  listServiceEvents: (c) => c.events.listOfService("i", { type: "webhook.test", since: time }, page),
  getMetrics: (c) =>
    c.metrics.get("i", { metric: ["cpu"], period: "1h", resolution: "1m", node_id: ["n"], start: time, end: time }),
  createManagedService: (c) => c.services.create({ ...service, ...choices, ...change }),
  listManagedServices: (c) =>
    c.services.list({ name: "n", status: "Running", database_type: "valkey", tag: "a:b" }, page),
  getManagedService: (c) => c.services.get("i"),
  updateManagedService: (c) => c.services.update("i", { name: "n", ...change }),
  startManagedService: (c) => c.services.command("i", "start"),
  stopManagedService: (c) => c.services.command("i", "stop"),
  restartManagedService: (c) => c.services.command("i", "restart"),
  deleteManagedService: (c) => c.services.delete("i"),
  getConnection: (c) => c.services.connection("i"),
  listNodes: (c) => c.services.nodes("i", page),
  listLogs: (c) => c.services.logs("i", { since: time, level: "info" }, page),
  getTaskSummary: (c) => c.services.taskSummary("i"),
  getMaintenance: (c) => c.services.maintenance("i"),
  applyMaintenance: (c) => c.services.applyMaintenance("i", ["u"], { acceptTextOrderChange: true }),
  getOperation: (c) => c.operations.get("i"),
  listOperations: (c) => c.operations.list("i", page),
  createOrganization: (c) => c.organizations.create("n"),
  listOrganizations: (c) => c.organizations.list(page),
  getOrganization: (c) => c.organizations.get("i"),
  updateOrganization: (c) => c.organizations.rename("i", "n"),
  deleteOrganization: (c) => c.organizations.delete("i"),
  listMembers: (c) => c.members.list("i", page),
  addMember: (c) => c.members.add("i", "u", "viewer"),
  updateMember: (c) => c.members.update("i", "u", "viewer"),
  removeMember: (c) => c.members.remove("i", "u"),
  createToken: (c) => c.tokens.create({ scopes: [], ttl_seconds: 1, resources: [] }),
  listTokens: (c) => c.tokens.list(page),
  deleteToken: (c) => c.tokens.delete("i"),
  createUser: (c) => c.users.create("u"),
  resetUser: (c) => c.users.reset("u"),
  setUpUser: (c) => c.users.setUp("t", "p"),
  changePassword: (c) => c.users.changePassword("a", "b"),
  getMe: (c) => c.me(),
  createWebhook: (c) => c.webhooks.create({ url: "u", events: [], retry_policy: "standard" }),
  listWebhooks: (c) => c.webhooks.list(page),
  getWebhook: (c) => c.webhooks.get("i"),
  updateWebhook: (c) => c.webhooks.update("i", { url: "u", events: null, active: true, retry_policy: "extended" }),
  deleteWebhook: (c) => c.webhooks.delete("i"),
  testWebhook: (c) => c.webhooks.test("i"),
  rotateSecret: (c) => c.webhooks.rotateSecret("i", 1),
  listDeliveries: (c) => c.webhooks.deliveries("i"),
  redeliver: (c) => c.webhooks.redeliver("i", "d"),
} as const satisfies { readonly [K in keyof Methods]: (client: sdk.Client) => unknown };

type Calls = typeof calls;
type Mutual<A, Widest, Narrowest> = [A] extends [Widest] ? ([Narrowest] extends [A] ? true : false) : false;

/** A client's type says no less than the message with each of its messages there, and no more than with any of them null. */
type Same<A, Schema extends DescMessage> =
  A extends sdk.List<sdk.PlatformEvent>
    ? SameEvent<Schema>
    : A extends sdk.List<infer Entry>
      ? Mutual<Entry, RestEntry<Schema>, RestEntry<Schema, never>>
      : A extends readonly (infer Entry)[]
        ? Mutual<Entry, RestEntry<Schema>, RestEntry<Schema, never>>
        : [A] extends [void]
          ? Schema["typeName"] extends "google.protobuf.Empty"
            ? true
            : false
          : Mutual<A, RestShape<Schema>, RestShape<Schema, never>>;

/** An event has the message's members, and by its type the data that the platform's own catalogue declares. */
type SameEvent<Schema extends DescMessage> = [sdk.PlatformEvent] extends [RestEntry<Schema>]
  ? Mutual<keyof sdk.PlatformEvent, keyof RestEntry<Schema>, keyof RestEntry<Schema>>
  : false;
type Declared = typeof eventDefinitions;
type DataOf<Fields> = {
  readonly [K in keyof Fields as Fields[K] extends { optional: true } ? never : K]: ValueOf<Fields[K]>;
} & { readonly [K in keyof Fields as Fields[K] extends { optional: true } ? K : never]?: ValueOf<Fields[K]> };
type ValueOf<Field> = Field extends { type: infer T extends keyof OtherValues } ? OtherValues[T] : string;
type OtherValues = { number: number; boolean: boolean; "string[]": readonly string[] };
type WrongEvents = {
  [T in keyof Declared | sdk.EventType]: T extends keyof Declared & sdk.EventType
    ? Mutual<sdk.EventData[T], DataOf<Declared[T]["data"]>, DataOf<Declared[T]["data"]>> extends true
      ? never
      : T
    : T;
}[keyof Declared | sdk.EventType];

/** Methods whose answers the SDK has another type for. */
type WrongAnswers = {
  [K in keyof Calls]: Same<Awaited<ReturnType<Calls[K]>>, Methods[K]["output"]> extends true ? never : K;
}[keyof Calls];

/** Of the path, of paging, and of gRPC alone. */
type Elsewhere = "id" | "service_id" | "update_mask" | "limit" | "cursor" | "follow";
type Asked<Schema extends DescMessage> = Omit<RestShape<Schema, never>, Elsewhere>;
type Given<Input> = { [K in keyof Input]-?: Exclude<Input[K], undefined | null> };

/** Names and types of a request's members; which may be left out or null is the hand's to say. */
type SameInput<Input, Schema extends DescMessage> = Mutual<Given<Input>, Given<Asked<Schema>>, Given<Asked<Schema>>>;

interface Inputs {
  newApiKey: SameInput<sdk.NewApiKey, typeof CreateApiKeyRequestSchema>;
  auditFilter: SameInput<sdk.AuditFilter, typeof ListAuditLogRequestSchema>;
  parameters: SameInput<{ parameters: sdk.ParameterChange }, typeof UpdateConfigurationRequestSchema>;
  newDatabaseUser: SameInput<sdk.NewDatabaseUser, typeof CreateDatabaseUserRequestSchema>;
  eventFilter: SameInput<
    Omit<sdk.EventFilter, "type"> & { readonly type: string },
    typeof ListServiceEventsRequestSchema
  >;
  newService: SameInput<sdk.NewService, typeof CreateManagedServiceRequestSchema>;
  serviceChange: SameInput<sdk.ServiceChange, typeof UpdateManagedServiceRequestSchema>;
  serviceFilter: SameInput<sdk.ServiceFilter, typeof ListManagedServicesRequestSchema>;
  metricQuery: SameInput<sdk.MetricQuery, typeof GetMetricsRequestSchema>;
  logFilter: SameInput<sdk.LogFilter, typeof ListLogsRequestSchema>;
  newToken: SameInput<sdk.NewToken, typeof CreateTokenRequestSchema>;
  newWebhook: SameInput<sdk.NewWebhook, typeof CreateWebhookRequestSchema>;
  webhookChange: SameInput<sdk.WebhookChange, typeof UpdateWebhookRequestSchema>;
}
type WrongInputs = { [K in keyof Inputs]: Inputs[K] extends true ? never : K }[keyof Inputs];

/** Do not compile while a type of the SDK is not that of the protos; the error names the method or the input. */
const wrongAnswers: Record<WrongAnswers, never> = {};
const wrongInputs: Record<WrongInputs, never> = {};
const wrongEvents: Record<WrongEvents, never> = {};

describe("the SDK's methods", () => {
  test("are as many as the API's, and their types are the protos'", () => {
    expect(Object.keys(calls).toSorted()).toEqual(restMethods.map(({ method }) => method.localName).toSorted());
    expect({ ...wrongAnswers, ...wrongInputs, ...wrongEvents }).toEqual({});
  });

  test.each(restMethods.map((rest) => [rest.method.localName, rest] as const))("%s", async (name, { method, path }) => {
    const asked: { verb: string; url: URL; body: object }[] = [];
    const client = createClient({
      baseUrl: "https://holdfast.test",
      fetch: async (input, init) => {
        const body = typeof init?.body === "string" ? (JSON.parse(init.body) as object) : {};
        asked.push({ verb: init?.method ?? "", url: input as URL, body });
        return Response.json({});
      },
    });
    const answer: unknown = calls[name as keyof Calls](client);
    await (typeof answer === "object" && answer !== null && "pages" in answer
      ? (answer as sdk.List<unknown>).pages().next()
      : answer);
    expect(asked).toHaveLength(1);
    const [{ verb, url, body } = { verb: "", url: new URL("x:"), body: {} }] = asked;
    expect(findRestMethod(verb, url.pathname)?.method.name).toBe(method.name);
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, field]) => field ?? "");
    const sent = [...inPath, ...url.searchParams.keys(), ...Object.keys(body)];
    const fields = method.input.fields.map((field) => field.name).filter((field) => !isElsewhere(field));
    expect(sent.toSorted()).toEqual(fields.toSorted());
  });
});

/** update_mask is for gRPC; followed are lists by methods of their own. */
function isElsewhere(field: string): boolean {
  return field === "update_mask" || field === "follow";
}
