import { create } from "@bufbuild/protobuf";
import {
  EngineUserSchema,
  type InstanceSpec,
  InstanceSpecSchema,
  ReplicationSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type CatalogData, planOf } from "#catalog/catalog.ts";
import type { DatabaseUserObject } from "../contents/user/database-user.ts";
import type { MachineStatus } from "#fleet/machine/machine.ts";
import { engineProfileOf } from "../engine/engine-profiles.ts";
import { privateNameOf } from "#fleet/zone/private-name.ts";
import type { ManagedServiceObject, NodeSpec } from "./managed-service.ts";
import { needsPrimaryLease, isReplicated, namedPrimary, numberOf, failoverCandidatesOf } from "./member/members.ts";
import { clientPorts, poolerOf, poolerPortOf } from "./pooler.ts";
import { restartsOf } from "./member/restarts.ts";
import { syncStandbysOf } from "./member/sync-standbys.ts";
import { nodeVersionOf } from "./canary/node-image.ts";

const gib = 1024 ** 3;

/** Inputs of an instance spec. */
export interface SpecArgs {
  readonly service: ManagedServiceObject;
  readonly node: NodeSpec;
  /** Addresses of the node's machine. */
  readonly addresses: Pick<MachineStatus, "address" | "publicAddress">;
  /** Private address of any member; empty until its machine is created. */
  readonly addressOf: (nodeId: string) => string;
  readonly users: readonly DatabaseUserObject[];
  readonly replicationSecret: string;
  readonly catalog: CatalogData;
  readonly running: boolean;
  readonly generation: number;
  /**
   * Version of the lease protocol that the agent supports. From 1 on it requests leases, and its keeper stops engines
   * without one.
   */
  readonly leaseProtocol: number;
}

/** Pure: everything that the agent of one node needs to run its engine, with or without controllers. */
export function instanceSpecOf(args: SpecArgs): InstanceSpec {
  const { service, node, addresses, users, catalog, running, generation } = args;
  const { spec } = service;
  const plan = planOf(catalog, spec.planName);
  const pooler = poolerOf(spec);
  const poolerPort = poolerPortOf(spec);
  const isClosed = spec.canary !== undefined || spec.closed === true;
  return create(InstanceSpecSchema, {
    serviceId: service.metadata.id,
    nodeId: node.id,
    engine: spec.databaseType,
    version: nodeVersionOf(spec, node),
    generation: BigInt(generation),
    term: BigInt(service.status.term),
    running,
    vcpu: plan.vcpu,
    memoryBytes: BigInt(plan.memoryGb * gib),
    storageBytes: BigInt(spec.storageSizeGb * gib),
    parameters: { ...spec.parameters },
    allowedCidrs: isClosed ? [] : [...spec.allowedCidrs],
    platformAccess: isClosed
      ? []
      : (spec.platformAccess ?? []).map(({ role, database, from }) => ({ role, database, from: [...from] })),
    onCanary: spec.canary !== undefined,
    closed: spec.closed === true,
    address: addresses.address,
    port: spec.port,
    listeners: Object.entries(clientPorts(spec)).flatMap(([name, port]) => [
      { name, address: addresses.address, port, audience: "private" },
      { name, address: addresses.publicAddress, port, audience: "public" },
    ]),
    users: users.map(({ spec: user }) =>
      create(EngineUserSchema, { username: user.username, role: user.role, verifier: user.verifier }),
    ),
    restartCount: BigInt(restartsOf(spec, node).delivered),
    writesAllowedUntilMs: BigInt(spec.writesAllowedUntil ?? 0),
    databases: [...engineProfileOf(spec.databaseType).databases],
    ...(pooler !== undefined && poolerPort !== undefined && { pooler: { mode: pooler.mode, port: poolerPort } }),
    ...(isReplicated(spec) && { replication: replicationOf(args) }),
  });
}

function replicationOf({ service, node, addressOf, replicationSecret: secret, leaseProtocol, running }: SpecArgs) {
  const members = service.spec.nodes.filter(({ leaving }) => leaving !== true);
  const primaryNodeId = namedPrimary(service);
  return create(ReplicationSchema, {
    primaryNodeId,
    secret,
    underPrimaryLease: needsPrimaryLease(service, leaseProtocol) && primaryNodeId === node.id && members.length > 1,
    voters: failoverCandidatesOf(service).map(({ id }) => id),
    // During a canary commits do not wait for replicas, which are pinned to the data from before.
    syncNumbers: service.spec.canary !== undefined && running ? [] : syncStandbysOf(service).map(numberOf),
    members: members.map((node) => ({
      nodeId: node.id,
      number: numberOf(node),
      hostname: privateNameOf(node.hostname),
      address: addressOf(node.id),
    })),
  });
}
