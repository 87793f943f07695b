import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import { CATALOG } from "@holdfast/common/errors.ts";
import { BadRequestSchema, ErrorInfoSchema, HelpSchema } from "@holdfast/proto/google/rpc/error_details_pb.ts";
import { Health, HealthCheckResponse_ServingStatus } from "@holdfast/proto/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "@holdfast/proto/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionV1Alpha } from "@holdfast/proto/grpc/reflection/v1alpha/reflection_pb.ts";
import { type ManagedService, ManagedServiceService } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { owner, reader, startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";

let gateway: TestGateway;
let transports: ReturnType<typeof createGrpcTransport>[] = [];
const asOwner = { headers: { authorization: owner } };
const good = { name: "orders", databaseType: "postgresql", planName: "dev", storageSizeGb: 1 };

beforeAll(async () => {
  gateway = await startTestGateway();
  const options = { baseUrl: gateway.baseUrl, nodeOptions: { ca: gateway.ca } };
  transports = [
    createGrpcTransport(options),
    createConnectTransport({ ...options, httpVersion: "2" }),
    createConnectTransport({ ...options, httpVersion: "1.1", useBinaryFormat: false }),
  ];
});
afterAll(() => gateway.close());
beforeEach(() => gateway.state.services.clear());

describe("calls", () => {
  test("gRPC, Connect over h2 and Connect JSON over HTTP/1.1 are the same", async () => {
    for (const [index, transport] of transports.entries()) {
      const client = createClient(ManagedServiceService, transport);
      const name = `orders-${index}`;
      const made = await client.createManagedService({ ...good, name }, asOwner);
      expect((await client.getManagedService({ id: made.id }, asOwner)).name).toBe(name);
    }
  });

  test("errors carry the catalog's code and every fault", async () => {
    for (const transport of transports) {
      const client = createClient(ManagedServiceService, transport);
      const error = await client
        .createManagedService({ ...good, name: "Orders", storageSizeGb: 0 }, asOwner)
        .catch(ConnectError.from);
      expect(error).toMatchObject({ code: Code.InvalidArgument });
      const [info] = (error as ConnectError).findDetails(ErrorInfoSchema);
      expect(info).toMatchObject({ reason: "INVALID_REQUEST", domain: "holdfast" });
      const [help] = (error as ConnectError).findDetails(HelpSchema);
      const [link] = help?.links ?? [];
      expect(link?.url).toContain("/docs/errors/invalid_request");
      expect(link?.description).toBe(CATALOG.INVALID_REQUEST.help);
      const [bad] = (error as ConnectError).findDetails(BadRequestSchema);
      expect(bad?.fieldViolations.map((violation) => violation.field)).toEqual(["name", "storage_size_gb"]);
    }
  });

  test("Connect's JSON has no fields that the method does not know", async () => {
    const path = "/holdfast.v1.ManagedServiceService/GetManagedService";
    const { status, json } = await gateway.call("POST", path, { body: { id: "x", idd: "y" } });
    expect([status, json.code]).toEqual([400, "invalid_argument"]);
    expect(json.message).toContain("idd");
  });

  test("a message over the method's limit is refused before it is read", async () => {
    for (const transport of transports) {
      const client = createClient(ManagedServiceService, transport);
      const error = await client
        .createManagedService({ ...good, tags: { a: "x".repeat(2 * 1024 * 1024) } }, asOwner)
        .catch(ConnectError.from);
      expect(error).toMatchObject({ code: Code.ResourceExhausted });
    }
  });

  test("the gate is the same as for REST", async () => {
    const client = createClient(ManagedServiceService, transports[0] as never);
    const codeOf = async (headers: Record<string, string>) =>
      ConnectError.from(await client.createManagedService(good, { headers }).catch((error: unknown) => error)).code;
    expect(await codeOf({})).toBe(Code.Unauthenticated);
    expect(await codeOf({ authorization: reader })).toBe(Code.PermissionDenied);
    for (const foreign of [{ "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "same-site" }, { origin: "null" }])
      expect(await codeOf({ authorization: owner, ...foreign } as Record<string, string>)).toBe(Code.PermissionDenied);
  });

  test("an unexpected error shows no details", async () => {
    const client = createClient(ManagedServiceService, transports[0] as never);
    const error = ConnectError.from(
      await client.restartManagedService({ id: "x" }, asOwner).catch((thrown: unknown) => thrown),
    );
    expect([error.code, error.message.includes("secret cause")]).toEqual([Code.Internal, false]);
  });

  test("an update needs an update_mask", async () => {
    const client = createClient(ManagedServiceService, transports[0] as never);
    const { id } = await client.createManagedService(good, asOwner);
    expect(
      (await client.updateManagedService({ id, name: "other", updateMask: { paths: ["name"] } }, asOwner)).name,
    ).toBe("other");
    for (const updateMask of [{ paths: [] }, { paths: ["id_"] }]) {
      const error = await client.updateManagedService({ id, name: "x", updateMask }, asOwner).catch(ConnectError.from);
      expect(error).toMatchObject({ code: Code.InvalidArgument });
    }
  });
});

test("a grpc-js client works, and an unknown method is its UNIMPLEMENTED", async () => {
  const definition = grpcService(ManagedServiceService);
  const credentials = grpc.credentials.createSsl(Buffer.from(gateway.ca));
  const Client = grpc.makeClientConstructor(
    { ...definition, nothing: { ...definition.listNodes, path: "/holdfast.v1.None/None" } } as never,
    "x",
  );
  const client = new Client(`localhost:${gateway.port}`, credentials);
  const metadata = new grpc.Metadata();
  metadata.set("authorization", owner);
  const call = (name: string, input: object) =>
    new Promise<ManagedService>((resolve, reject) =>
      client[name]?.call(client, input, metadata, (error: Error | null, value: ManagedService) =>
        error === null ? resolve(value) : reject(error),
      ),
    );
  const { id } = await call("createManagedService", {
    $typeName: "holdfast.v1.CreateManagedServiceRequest",
    ...good,
    parameters: {},
    tags: {},
    deletionProtection: false,
  });
  expect((await call("getManagedService", { $typeName: "holdfast.v1.GetManagedServiceRequest", id })).name).toBe(
    "orders",
  );
  await expect(call("nothing", { $typeName: "holdfast.v1.ListNodesRequest", id })).rejects.toMatchObject({
    code: grpc.status.UNIMPLEMENTED,
  });
  client.close();
});

describe("reflection", () => {
  for (const service of [ServerReflection, ServerReflectionV1Alpha]) {
    test(`${service.typeName} needs no credential and returns files with their imports`, async () => {
      const client = createClient(service, transports[0] as never);
      const requests = [
        { case: "listServices", value: "" },
        { case: "fileContainingSymbol", value: "holdfast.v1.ManagedServiceService.ListLogs" },
        { case: "fileByFilename", value: "google/api/annotations.proto" },
        {
          case: "fileContainingExtension",
          value: { containingType: "google.protobuf.MethodOptions", extensionNumber: 50101 },
        },
        { case: "allExtensionNumbersOfType", value: "google.protobuf.FieldOptions" },
        { case: "fileContainingSymbol", value: "holdfast.v1.Nothing" },
      ] as const;
      const answers = [];
      const stream = client.serverReflectionInfo(
        (async function* () {
          for (const messageRequest of requests) yield { messageRequest };
        })(),
      );
      for await (const answer of stream) answers.push(answer.messageResponse);
      expect(answers.map((answer) => answer.case)).toEqual([
        "listServicesResponse",
        "fileDescriptorResponse",
        "fileDescriptorResponse",
        "fileDescriptorResponse",
        "allExtensionNumbersResponse",
        "errorResponse",
      ]);
      const [list, symbol] = answers;
      expect(list?.case === "listServicesResponse" && list.value.service.map(({ name }) => name)).toEqual(
        expect.arrayContaining([
          "holdfast.v1.ManagedServiceService",
          "grpc.health.v1.Health",
          "grpc.reflection.v1.ServerReflection",
        ]),
      );
      const files =
        symbol?.case === "fileDescriptorResponse"
          ? symbol.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes))
          : [];
      const names = new Set(files.map((file) => file.name));
      expect(names).toContain("holdfast/v1/managed_service.proto");
      expect(files.flatMap((file) => file.dependency).filter((name) => !names.has(name))).toEqual([]);
    });
  }
});

test("health has the status of the server and of each service", async () => {
  const client = createClient(Health, transports[0] as never);
  expect((await client.check({})).status).toBe(HealthCheckResponse_ServingStatus.SERVING);
  gateway.isReady = false;
  expect((await client.check({ service: "holdfast.v1.ManagedServiceService" })).status).toBe(
    HealthCheckResponse_ServingStatus.NOT_SERVING,
  );
  expect((await gateway.call("GET", "/healthz", { authorization: null })).status).toBe(503);
  gateway.isReady = true;
  expect((await gateway.call("GET", "/healthz", { authorization: null })).status).toBe(200);
  expect(ConnectError.from(await client.check({ service: "nothing" }).catch((error: unknown) => error)).code).toBe(
    Code.NotFound,
  );
});
