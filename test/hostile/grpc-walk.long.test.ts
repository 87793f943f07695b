import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { status } from "@grpc/grpc-js";
import { roleScopes } from "@holdfast/controller/systems.ts";
import { rules as rulesOption } from "@holdfast/proto/holdfast/v1/options_pb.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { organizationServices, platformServices, restMethods } from "@holdfast/testing/api/api-methods.ts";
import { framed, hostileBodies } from "@holdfast/testing/hostile/grpc-bodies.ts";
import { type HostileGateway, startHostileGateway } from "./hostile-gateway.ts";

const services = [...organizationServices, ...platformServices];
const methods = services.flatMap((service) => service.methods);
/** Size limit of a rejection, with its headers. */
const refusalBytes = 16 * 1024;

const pathOf = (method: DescMethod) => `${method.parent.typeName}/${method.name}`;
const scopeOf = (method: DescMethod) => getOption(method, rulesOption).scope;
const bodyBytes = (method: DescMethod): number =>
  getOption(method, rulesOption).maxBodyBytes || (scopeOf(method) === "public" ? 8 : 64) * 1024;

let gateway: HostileGateway;
beforeAll(async () => {
  gateway = await startHostileGateway(services, { bodyTimeoutMs: 2_000 });
});
afterAll(() => gateway.close());

/** Callers that the method rejects, with the status for each. */
function refusedBy(method: DescMethod): (readonly ["nobody" | "viewer", number])[] {
  const scope = scopeOf(method);
  if (scope === "public") return [];
  const isViewers = scope === "signed-in" || roleScopes.viewer.has(scope);
  return [["nobody", status.UNAUTHENTICATED], ...(isViewers ? [] : [["viewer", status.PERMISSION_DENIED] as const])];
}

describe("over binary gRPC", () => {
  test.each(methods.map((method) => [pathOf(method), method] as const))(
    "%s rejects invalid calls, in 16 KiB",
    async (path, method) => {
      for (const { what, body, headers } of hostileBodies(method.input, bodyBytes(method))) {
        const response = await gateway.call({ path, body, as: "owner", ...(headers && { headers }) });
        const description = `${what}: ${response.status}, ${response.bytes} bytes`;
        // A body that cannot be decoded is INTERNAL in gRPC; one that decodes is rejected by its method, or accepted by
        // the catalog.
        expect(
          [response.status > 0 || path.endsWith("/GetCatalog"), response.bytes <= refusalBytes],
          description,
        ).toEqual([true, true]);
        for (const [as, refusal] of refusedBy(method))
          expect([what, as, (await gateway.call({ path, body, as })).status]).toEqual([what, as, refusal]);
      }
      expect([gateway.stored.size, gateway.logged]).toEqual([0, []]);
    },
  );

  test("calls that are canceled midway invoke no method, and the next ones get responses", async () => {
    const before = gateway.invoked;
    await Promise.all(methods.map((method) => gateway.cancelCall(pathOf(method))));
    const body = framed(Buffer.alloc(0));
    expect((await gateway.call({ path: "holdfast.v1.CatalogService/GetCatalog", body, as: "owner" })).status).toBe(0);
    expect([gateway.invoked - before, gateway.stored.size, gateway.logged]).toEqual([0, 0, []]);
  });

  test("slow bodies are ended, all concurrently, while others get responses", async () => {
    const call = { "content-type": "application/grpc+proto", te: "trailers" };
    const request = { "content-type": "application/json", "content-length": "8000" };
    const authorization = gateway.authorizationOf("owner");
    const drips = [
      ...methods.map((method) => gateway.drip(`/${pathOf(method)}`, { ...call, authorization })),
      ...restMethods
        .filter(({ verb }) => verb === "POST")
        .flatMap(({ path }) => [
          gateway.drip(path.replaceAll(/\{[^}]*\}/g, "x"), { ...request, authorization }),
          // Rejected before its body is read.
          gateway.drip(path.replaceAll(/\{[^}]*\}/g, "x"), request),
        ]),
      gateway.drip("/nothing/is/here", request),
      gateway.drip("/healthz", request),
    ];
    const body = framed(Buffer.alloc(0));
    expect((await gateway.call({ path: "holdfast.v1.CatalogService/GetCatalog", body, as: "viewer" })).status).toBe(0);
    await Promise.all(drips);
    expect((await gateway.call({ path: "holdfast.v1.CatalogService/GetCatalog", body, as: "viewer" })).status).toBe(0);
  });
});
