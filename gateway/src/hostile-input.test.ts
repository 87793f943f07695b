import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { BadRequestSchema, ErrorInfoSchema } from "@holdfast/proto/google/rpc/error_details_pb.ts";
import { ManagedServiceService } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { UserService } from "@holdfast/proto/holdfast/v1/user_pb.ts";
import { owner, startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";
import { afterAll, beforeAll, expect, test } from "vitest";

let gateway: TestGateway;
let setUps = 0;

const refused = async () => {
  throw new HoldfastError("UNAUTHENTICATED", "Not in this test.");
};
const users = serve(UserService, {
  ...Object.fromEntries(UserService.methods.map(({ localName }) => [localName, refused])),
  async setUpUser() {
    setUps += 1;
    throw new HoldfastError("NOT_POSSIBLE", "The invitation is not good.");
  },
} as never);

beforeAll(async () => {
  gateway = await startTestGateway([users]);
});
afterAll(() => gateway.close());

const good = { name: "orders", database_type: "postgresql", plan_name: "dev", storage_size_gb: 1 };
const largestAnswer = 16 * 1024;
const create = (body: object, headers: Record<string, string> = {}) =>
  gateway.call("POST", "/managed-services", { body, headers });
const grpc = () =>
  createClient(
    ManagedServiceService,
    createGrpcTransport({ baseUrl: gateway.baseUrl, nodeOptions: { ca: gateway.ca } }),
  );

test("refusals without a credential are not stored", async () => {
  for (const body of [{}, { token: "x".repeat(43), password: "a long password" }]) {
    for (let n = 0; n < 2; n += 1) {
      const answer = await gateway.call("POST", "/users/setup", {
        body,
        authorization: null,
        headers: { "idempotency-key": "k" },
      });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.headers["idempotency-replayed"]).toBeUndefined();
    }
  }
  expect([gateway.storedResponses.size, setUps]).toEqual([0, 2]);
});

test("refusals before the handler are not stored, even with a credential", async () => {
  const before = gateway.storedResponses.size;
  const answers = [
    await create({ junk: 1 }, { "idempotency-key": "j" }),
    await create(good, { "idempotency-key": "j" }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([400, 202]);
  expect(gateway.storedResponses.size).toBe(before + 1);
});

test("public methods accept bodies of 8 KiB, others of 64 KiB", async () => {
  const text = (bytes: number) => JSON.stringify({ name: "x".repeat(bytes) });
  const setUp = (bytes: number) =>
    gateway.call("POST", "/users/setup", { text: text(bytes), authorization: null }).then(({ status }) => status);
  expect([await setUp(8_000), await setUp(8_200)]).toEqual([400, 413]);
  const made = (bytes: number) =>
    gateway.call("POST", "/managed-services/x/databases", { text: text(bytes) }).then(({ status }) => status);
  expect([await made(65_000), await made(66_000)]).toEqual([400, 413]);
});

test("a too long list or map is one fault, regardless of its entries", async () => {
  const networks = Array.from({ length: 3_000 }, (_, n) => `x${n}`);
  const parameters = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`p${n}`, "x"]));
  const { status, json } = await create({ ...good, name: "long", allowed_cidrs: networks, parameters });
  expect([status, json.errors.map(({ field, code }: { field: string; code: string }) => [field, code])]).toEqual([
    400,
    [
      ["allowed_cidrs", "repeated_max_items"],
      ["parameters", "map_max_pairs"],
    ],
  ]);
  const error = ConnectError.from(
    await grpc()
      .createManagedService(
        { name: "long", databaseType: "postgresql", planName: "dev", allowedCidrs: { values: networks } },
        { headers: { authorization: owner } },
      )
      .catch((thrown: unknown) => thrown),
  );
  const [bad] = error.findDetails(BadRequestSchema);
  expect(bad?.fieldViolations.map(({ field, reason }) => [field, reason])).toEqual([
    ["allowed_cidrs.values", "REPEATED_MAX_ITEMS"],
  ]);
});

test("a response has the first 20 faults and the number of others, within 16 KiB", async () => {
  const junk = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`junk${n}`, 1]));
  const { status, json, text } = await create(junk);
  expect([status, json.errors.length, json.errors_omitted]).toEqual([400, 20, 4_984]);
  expect(text.length).toBeLessThan(largestAnswer);
});

test.each([
  ["long keys", (n: number) => `${n}${"k".repeat(2_000)}`],
  ["keys that JSON must escape", (n: number) => `${n}${"\u0001".repeat(300)}`],
  ["keys of four bytes a character", (n: number) => `${n}${"\u{1f600}".repeat(500)}`],
])("a response of faults with %s is at most 16 KiB", async (_, key) => {
  const { status, json, text } = await create(Object.fromEntries(Array.from({ length: 25 }, (__, n) => [key(n), 1])));
  expect(status).toBe(400);
  expect(Buffer.byteLength(text)).toBeLessThan(largestAnswer);
  expect(json.errors.length + json.errors_omitted).toBe(29);
});

test("over gRPC an error has the first 20 faults and the number of others", async () => {
  const tags = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`${n}`, "v".repeat(300)]));
  const error = ConnectError.from(
    await grpc()
      .createManagedService({ name: "many", tags }, { headers: { authorization: owner } })
      .catch((thrown: unknown) => thrown),
  );
  expect(error.code).toBe(Code.InvalidArgument);
  const [info] = error.findDetails(ErrorInfoSchema);
  const [bad] = error.findDetails(BadRequestSchema);
  expect(bad?.fieldViolations.length).toBeLessThanOrEqual(20);
  expect(Number(info?.metadata.errors_omitted)).toBeGreaterThan(20);
});

test("over gRPC a credential is checked before the message is read", async () => {
  const large = { name: "large", tags: { a: "x".repeat(2 * 1024 * 1024) } };
  const codeOf = async (headers: Record<string, string>) =>
    ConnectError.from(
      await grpc()
        .createManagedService(large, { headers })
        .catch((thrown: unknown) => thrown),
    ).code;
  expect(await codeOf({})).toBe(Code.Unauthenticated);
  expect(await codeOf({ authorization: owner })).toBe(Code.ResourceExhausted);
});

test("a large response is sent in chunks and is complete", async () => {
  const { headers, text } = await gateway.call("GET", "/openapi.json", { authorization: null });
  expect(Number(headers["content-length"])).toBe(Buffer.byteLength(text));
  expect(text.length).toBeGreaterThan(64 * 1024);
});

const chargedBodies = {
  REST: async (limited: TestGateway) => {
    const headers = { "content-type": "application/json" };
    const { status } = await limited.call("POST", "/managed-services", {
      text: `{"name":"${"x".repeat(60_000)}"}`,
      headers,
    });
    return status === 429;
  },
  gRPC: async ({ baseUrl, ca }: TestGateway) => {
    const rpcs = createClient(ManagedServiceService, createGrpcTransport({ baseUrl, nodeOptions: { ca } }));
    const call = rpcs.createManagedService({ name: "x".repeat(60_000) }, { headers: { authorization: owner } });
    return ConnectError.from(await call.catch((thrown: unknown) => thrown)).code === Code.ResourceExhausted;
  },
};

test.each(Object.entries(chargedBodies))(
  "over %s a body is charged by its size before it is validated",
  async (_, isRefused) => {
    // Twenty small concurrent requests.
    const limited = await startTestGateway([users], { rateLimit: { reads: 2, changes: 2, messages: 2 } });
    try {
      const refusals = await Promise.all(Array.from({ length: 12 }, () => isRefused(limited)));
      expect(new Set(refusals)).toEqual(new Set([false, true]));
    } finally {
      await limited.close();
    }
  },
);
