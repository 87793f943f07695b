import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { status as Code } from "@grpc/grpc-js";
import type { Clock } from "@holdfast/common/clock.ts";
import { RpcFailure } from "@holdfast/mtls/rpc-handlers.ts";
import {
  type MintObjectUrlsRequest,
  type ObjectUrls,
  ObjectUrlsSchema,
  type ObjectUse,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { contributionPoint } from "#kernel/contribution-point.ts";
import type { UrlSigner } from "#kernel/objects/url-signer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { MachineObject } from "./machine/machine.ts";

/** A prefix of object keys that a machine may use, with the permitted HTTP methods. */
export interface ObjectGrant {
  readonly prefix: string;
  readonly methods: ReadonlySet<string>;
}

/** The purpose for which a machine uses objects, such as a backup. */
export type GrantScope = MintObjectUrlsRequest["scope"];

/** Grants of objects to the machines of one kind of owner. */
export interface ObjectGrantSource {
  /** Name of the owner's kind. */
  readonly ownerKind: string;
  /** Objects that a machine of the owner may use now for the purpose; empty for none. */
  grantsOf(machineId: string, ownerId: string, scope: GrantScope): readonly ObjectGrant[];
}

export const objectGrants = contributionPoint<ObjectGrantSource>("object grants", {
  key: ({ ownerKind }) => ownerKind,
});

/** Objects that a machine may use for a purpose, by its owner; empty for a machine without an owner. */
export function grantsOf(
  machineId: string,
  scope: GrantScope,
  {
    machines,
    sources,
  }: {
    readonly machines: Pick<Collection<MachineObject>, "get">;
    readonly sources: readonly ObjectGrantSource[];
  },
): readonly ObjectGrant[] {
  const owner = machines.get(machineId)?.object.spec.owner;
  const source = sources.find(({ ownerKind }) => ownerKind === owner?.kind);
  return owner == null || source === undefined ? [] : source.grantsOf(machineId, owner.id, scope);
}

/** The first use that no grant covers; undefined if all are covered. */
export function firstUncovered(grants: readonly ObjectGrant[], uses: readonly ObjectUse[]): ObjectUse | undefined {
  return uses.find(
    ({ method, key }) => !grants.some(({ prefix, methods }) => methods.has(method) && key.startsWith(prefix)),
  );
}

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
