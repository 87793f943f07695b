import { access } from "node:fs/promises";
import { addressesOf } from "../addresses.ts";
import type { Companion, EngineCheck, Instance } from "../engine-driver.ts";
import { type Front, frontCompanion } from "../front/front.ts";
import { applyAllowLists, applyNextFronts, endForbiddenSessions } from "../front/front-commands.ts";
import { roleOf } from "../members.ts";
import { addressesOfMembers, frontOf, userSessions } from "./front.ts";
import { forwardedSocket, poolerSocket } from "./layout.ts";
import { codeOf, messageOf } from "./session.ts";

/**
 * The pooler of MySQL: a front on each member that forwards clients to the service's primary, so that a client with the
 * address of a former primary reaches the new one. A connection is a session of the engine; none is shared.
 *
 * The primary's pooler forwards to the clients' front of its machine. A replica's pooler forwards to a second port of
 * the primary's, which admits only members. Each sends its client's address first, so the primary's front enforces the
 * allow-list and the limit of sessions for all of them. TLS remains between the client and the primary's engine.
 *
 * The files name the primary of the settings. A running pooler is redirected when the settings change, and at each
 * observation.
 */
export function poolerFrontOf(instance: Instance): Front<"primary" | "engine"> | undefined {
  const { spec } = instance;
  if (spec.pooler === undefined) return undefined;
  const { port } = spec.pooler;
  const limit = userSessions(instance);
  const isPrimary = roleOf(spec) === "primary";
  const leader = spec.replication?.members.find(({ nodeId }) => nodeId === spec.replication?.primaryNodeId);
  const hasLeader = !isPrimary && leader !== undefined && leader.address !== "";
  const engine = { name: "own", at: { socket: forwardedSocket(instance) }, isInUse: isPrimary };
  const primary = {
    name: "other",
    at: {
      // HAProxy needs an address of a server that is not in use too.
      address: { address: hasLeader ? leader.address : spec.address, port: membersPort(port) },
      sourceAddress: spec.address,
    },
    isInUse: hasLeader,
  };
  return {
    ...frontOf(instance),
    name: "pooler",
    commandSocket: poolerSocket(instance),
    // Further clients wait here or at the clients' front.
    connectionLimit: 2 * limit,
    listeners: [
      {
        name: "pooler",
        mode: "pass",
        addresses: addressesOf(spec).map((address) => ({ address, port })),
        connectionLimit: limit,
        allows: { by: "network", file: "pooler-allowed.lst", cidrs: spec.allowedCidrs },
        backend: "primary",
      },
      {
        name: "members",
        mode: "pass",
        addresses: [{ address: spec.address, port: membersPort(port) }],
        connectionLimit: limit,
        allows: { by: "network", file: "pooler-members.lst", cidrs: addressesOfMembers(instance) },
        takesClientAddress: true,
        // Not the primary of the settings: members with different settings could forward in a circle.
        backend: "engine",
      },
    ],
    backends: { primary: { fronts: [engine, primary] }, engine: { fronts: [engine] } },
  };
}

/** Port of a member's pooler for the poolers of the other members. */
const membersPort = (port: number): number => port + 10_000;

const checkName = "pooler";

/** The pooler as an optional companion: clients of the engine's own port do not depend on it. */
export function poolerCompanion(instance: Instance): Companion {
  const front = poolerFrontOf(instance);
  const { command, stop } = frontCompanion(front ?? { ...frontOf(instance), name: checkName });
  return { name: checkName, command, stop, isOptional: true, isEnabled: front !== undefined };
}

/** Applies changed settings to a running pooler; one that is not up yet starts with the files. */
export async function reloadPooler(instance: Instance, signal: AbortSignal): Promise<void> {
  const front = poolerFrontOf(instance);
  if (front === undefined) return;
  try {
    await applyNextFronts(front, signal);
    await applyAllowLists(front, signal);
  } catch (error) {
    if (!isNotRunning(error)) throw error;
  }
}

/** Health check, which also corrects a pooler that started with older files. Undefined if the pooler is disabled. */
export async function checkPooler(instance: Instance, signal: AbortSignal): Promise<EngineCheck | undefined> {
  const front = poolerFrontOf(instance);
  if (front === undefined) return undefined;
  const unhealthy = (reason: string): EngineCheck => ({ name: checkName, status: "unhealthy", reason });
  try {
    await applyNextFronts(front, signal);
    await endForbiddenSessions(front, signal);
  } catch (error) {
    return unhealthy(isNotRunning(error) ? "The pooler does not run." : messageOf(error));
  }
  if (roleOf(instance.spec) === "primary" && !(await forwards(instance)))
    return unhealthy("The service started before its agent supported poolers. Restart the service.");
  return { name: checkName, status: "healthy", reason: "" };
}

/** False if an agent without poolers started the clients' front of this machine. */
function forwards(instance: Instance): Promise<boolean> {
  return access(forwardedSocket(instance)).then(
    () => true,
    () => false,
  );
}

function isNotRunning(error: unknown): boolean {
  return ["ENOENT", "ECONNREFUSED"].includes(codeOf(error));
}
