import { list, type ValuesOf } from "@holdfast/common/config.ts";
import { createEgress, type Egress } from "@holdfast/egress/create-egress.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { listenersAt } from "@holdfast/egress/own-addresses.ts";
import { watchedClient } from "@holdfast/egress/watched-client.ts";
import { inferenceProcessKind } from "#inference/process/inference-process.ts";
import type { FleetSystem } from "#fleet/fleet-system.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";

const egressSettings = {
  allowEgress: list(
    "HOLDFAST_ALLOW_EGRESS",
    "Networks (CIDRs) that are not public and that URLs of users, such as webhooks, may lead to all the same",
  ),
  operatorEgress: list(
    "HOLDFAST_OPERATOR_EGRESS",
    "Networks (CIDRs) that are not public and that servers which operators configure, such as the one for mail, may be in",
  ),
} as const;

interface EgressSystemDeps {
  /** host:port of the control plane's own servers. */
  readonly listeners: readonly string[];
  /** Addresses of the installation beside those of this host. */
  readonly ownAddresses: readonly string[];
  readonly fleet: Pick<FleetSystem, "listeners" | "loopbackBlock" | "machines" | "hosts">;
}

interface EgressGives {
  readonly egress: Pick<Egress, "users" | "operators">;
  /** For servers that operators configure. */
  readonly operatorEgress: EgressClient;
  /** Networks that URLs of users may lead to although they are not public. */
  readonly allowedEgress: readonly string[];
  /** host:port of every listener of the installation, as of now. */
  readonly ownListeners: () => readonly string[];
}

/** Connections to where users and operators say, never to the platform's own servers and machines. */
export const egressSystem = declareSystem({ name: "egress", settings: egressSettings, open: openEgressSystem });

function openEgressSystem(
  { collections, membership, metrics }: Kernel,
  { listeners, ownAddresses, fleet }: EgressSystemDeps,
  { allowEgress, operatorEgress }: ValuesOf<typeof egressSettings>,
): System<EgressGives> {
  const proxies = collections.open(inferenceProcessKind);
  const comingAndGoing = () =>
    [
      ...membership.members().flatMap(({ address, listeners: theirs = [] }) => [address, ...theirs]),
      ...[...proxies.values()].flatMap(({ object: { status } }) => status.listeners ?? []),
      ...[...fleet.hosts.values()].map(({ object: { spec } }) => spec.address),
    ].filter((each) => each !== "");
  const fixed = [...listeners, ...fleet.listeners];
  const connections = createEgress(
    { users: allowEgress, operators: operatorEgress },
    {
      listeners: fixed,
      addresses: ownAddresses,
      members: comingAndGoing,
      loopbackBlock: fleet.loopbackBlock,
      machineAddresses: () =>
        [...fleet.machines.values()].flatMap(({ object: { status } }) => [status.address, status.publicAddress]),
    },
  );
  const sent = metrics.times("egress_seconds", "Requests and connections to where users and operators say", "what");
  const users = watchedClient(connections.users, (what, ...how) => sent.observe(`users ${what}`, ...how));
  const operators = watchedClient(connections.operators, (what, ...how) => sent.observe(`operators ${what}`, ...how));
  return {
    name: "egress",
    gives: {
      egress: { users, operators },
      operatorEgress: operators,
      allowedEgress: allowEgress,
      ownListeners: () => listenersAt(ownAddresses, [...new Set([...fixed, ...comingAndGoing()])]),
    },
    close: () => connections.close(),
  };
}
