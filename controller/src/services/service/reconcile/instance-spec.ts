import { create } from "@bufbuild/protobuf";
import { enginePortOf, familyOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { EngineUserSchema, type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { planOf } from "#catalog/catalog.ts";
import { engineProfileOf } from "../../engine/engine-profiles.ts";
import { sessionRoleOf } from "../../contents/user/attached-login.ts";
import { bucketOf } from "../../files/files-connection.ts";
import { clientNetworksOf } from "../network/client-networks.ts";
import { clientPorts, poolerOf, poolerPortOf } from "../pooler.ts";
import { privatePortOf } from "../private-listener.ts";
import { restartsOf } from "../member/restarts.ts";
import { nodeVersionOf } from "../canary/node-image.ts";
import type { SpecArgs } from "../spec-args.ts";
import { memberSettingsOf } from "../member/member-settings.ts";

const gib = 1024 ** 3;

/** The instance spec of one node: all that its agent needs to run the engine, with or without controllers. */
export function instanceSpecOf(args: SpecArgs): InstanceSpec {
  const { service, node, addresses, users, catalog, running, generation } = args;
  const { spec } = service;
  const plan = planOf(catalog, spec.planName);
  const pooler = poolerOf(spec);
  const poolerPort = poolerPortOf(spec);
  const privatePort = privatePortOf(spec);
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
    recoveryMemoryBytes: BigInt(args.recoveryMemoryBytes),
    storageBytes: BigInt(spec.storageSizeGb * gib),
    parameters: { ...spec.parameters },
    allowedCidrs: isClosed ? [] : [...clientNetworksOf(spec)],
    platformAccess: isClosed
      ? []
      : (spec.platformAccess ?? []).map(({ role, database, from }) => ({ role, database, from: [...from] })),
    onCanary: spec.canary !== undefined,
    closed: spec.closed === true,
    address: addresses.address,
    port: enginePortOf(spec.databaseType, spec.port) ?? spec.port,
    listeners: [
      ...Object.entries(clientPorts(spec)).flatMap(([name, port]) => [
        { name, address: addresses.address, port, audience: "private" },
        { name, address: addresses.publicAddress, port, audience: "public" },
      ]),
      ...(privatePort === undefined
        ? []
        : [{ name: "private", address: addresses.address, port: privatePort, audience: "private" }]),
    ],
    // A deleted user must not return with its bootstrap or restore.
    users: users
      .filter(({ metadata }) => metadata.deletionRequestedAt === undefined)
      .map((user) => {
        const { username, role, verifier } = user.spec;
        const { usersHaveSecrets } = engineProfileOf(spec.databaseType);
        const sessionRole = sessionRoleOf(user, spec.databaseType);
        return create(EngineUserSchema, {
          username,
          role,
          ...(sessionRole !== undefined && { sessionRole }),
          verifier: usersHaveSecrets === true ? args.passwordOf(user) : verifier,
        });
      }),
    bucket: familyOf(spec.databaseType) === "files" ? bucketOf(spec) : "",
    bucketDomain: spec.bucketHost === true ? spec.hostname : "",
    layoutMode: spec.layoutMode ?? "",
    serverCollation: spec.serverCollation ?? "",
    restartCount: BigInt(restartsOf(spec, node).delivered),
    writesAllowedUntilMs: BigInt(spec.writesAllowedUntil ?? 0),
    databases: [...engineProfileOf(spec.databaseType).databases],
    ...(pooler !== undefined && poolerPort !== undefined && { pooler: { mode: pooler.mode, port: poolerPort } }),
    ...memberSettingsOf(args),
  });
}
