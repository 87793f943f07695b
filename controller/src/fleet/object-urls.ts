import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { status as Code } from "@grpc/grpc-js";
import type { Clock } from "@holdfast/common/clock.ts";
import { RpcFailure } from "@holdfast/mtls/rpc-handlers.ts";
import {
  type MintObjectUrlsRequest,
  type ObjectUrls,
  type ObjectUse,
  ObjectUrlsSchema,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { UrlSigner } from "#kernel/objects/url-signer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { MachineObject } from "./machine/machine.ts";
import { firstUncovered, grantsOf, type ObjectGrantSource } from "./object-grants.ts";

/** Mints presigned URLs of the objects that a machine may read or write now. */
export interface ObjectUrlGrants {
  /** Throws an RpcFailure: PERMISSION_DENIED for objects of other machines, UNAVAILABLE without an object store. */
  mint(machineId: string, request: MintObjectUrlsRequest, signal: AbortSignal): Promise<ObjectUrls>;
}

export interface ObjectUrlsDeps {
  readonly machines: Pick<Collection<MachineObject>, "get">;
  readonly sources: readonly ObjectGrantSource[];
  readonly signer: UrlSigner;
  readonly clock: Pick<Clock, "now">;
}

/** Lifetime of a URL. Machines request new URLs at half of it, so they can use each URL for at least an hour. */
const urlLifetimeS = 2 * 3_600;
const usesMax = 1_000;

/** Signs URLs only for objects that a machine's purpose covers. */
export function createObjectUrls(deps: ObjectUrlsDeps): ObjectUrlGrants {
  const { signer, clock } = deps;
  return {
    async mint(machineId, { scope, uses }) {
      if (uses.length > usesMax) throw new RpcFailure(Code.INVALID_ARGUMENT, `a request has at most ${usesMax} uses`);
      const uncovered = firstUncovered(grantsOf(machineId, scope, deps), uses);
      if (uncovered !== undefined)
        throw new RpcFailure(
          Code.PERMISSION_DENIED,
          `the machine has no permission for ${uncovered.method} of ${uncovered.key}`,
        );
      const expiresAt = timestampFromMs(clock.now() + urlLifetimeS * 1_000);
      const { endpoint } = signer;
      const [urls, addresses] = await Promise.all([
        Promise.all(uses.map((use) => signer.sign({ method: methodOf(use), key: use.key }, urlLifetimeS))),
        endpoint.addresses(),
      ]);
      return create(ObjectUrlsSchema, {
        urls: urls.map(({ url, headers }) => ({ url, headers: { ...headers } })),
        expiresAt,
        endpoint: { addresses: [...addresses], port: endpoint.port, trustBundle: endpoint.trustBundle() },
      });
    },
  };
}

function methodOf({ method }: ObjectUse): "PUT" | "GET" | "HEAD" {
  if (method === "PUT" || method === "GET" || method === "HEAD") return method;
  throw new RpcFailure(Code.INVALID_ARGUMENT, `${method} is not PUT, GET or HEAD`);
}
