import { list, type ValuesOf } from "@holdfast/common/config.ts";
import { createEgress, type Egress } from "@holdfast/egress/create-egress.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { listenersAt } from "@holdfast/egress/own-addresses.ts";
import { instrumentedClient } from "@holdfast/egress/instrumented-client.ts";
import { inferenceProcessKind } from "#inference/process/inference-process.ts";
import type { FleetSystem } from "#fleet/fleet-system.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";

const egressSettings = {
  allowEgress: list(
    "HOLDFAST_ALLOW_EGRESS",
    "Networks (CIDRs) that are not public but allowed for URLs of users, such as webhooks",
  ),
  operatorEgress: list(
    "HOLDFAST_OPERATOR_EGRESS",
    "Networks (CIDRs) that are not public but allowed for servers that operators configure, such as for mail",
  ),
} as const;

interface EgressSystemDeps {
  /** host:port of the control plane's own servers. */
  readonly listeners: readonly string[];
  /** Addresses of the installation besides those of this host. */
  readonly ownAddresses: readonly string[];
  readonly fleet: Pick<FleetSystem, "listeners" | "loopbackBlock" | "machines" | "hosts">;
}

interface EgressGives {
  readonly egress: Pick<Egress, "users" | "operators">;
  /** Client for servers that operators configure. */
  readonly operatorEgress: EgressClient;
  /** Networks that are not public but allowed for users' URLs. */
  readonly allowedEgress: readonly string[];
  /** host:port of every current listener of the installation. */
  readonly ownListeners: () => readonly string[];
}

/** Connections to targets that users and operators choose, never to the platform's own servers and machines. */
export const egressSystem = declareSystem({ name: "egress", settings: egressSettings, open: openEgressSystem });

function openEgressSystem(
  { collections, controllerRegistry, metrics }: Kernel,
  { listeners, ownAddresses, fleet }: EgressSystemDeps,
  { allowEgress, operatorEgress }: ValuesOf<typeof egressSettings>,
): System<EgressGives> {
  const proxies = collections.open(inferenceProcessKind);
  const changingListeners = () =>
    [
      ...controllerRegistry.controllers().flatMap(({ address, listeners: theirs = [] }) => [address, ...theirs]),
      ...[...proxies.values()].flatMap(({ object: { status } }) => status.listeners ?? []),
      ...[...fleet.hosts.values()].map(({ object: { spec } }) => spec.address),
    ].filter((each) => each !== "");
  const fixed = [...listeners, ...fleet.listeners];
  const connections = createEgress(
    { users: allowEgress, operators: operatorEgress },
    {
      listeners: fixed,
      addresses: ownAddresses,
      members: changingListeners,
      loopbackBlock: fleet.loopbackBlock,
      machineAddresses: () =>
        [...fleet.machines.values()].flatMap(({ object: { status } }) => [status.address, status.publicAddress]),
    },
  );
  const sent = metrics.times("egress_seconds", "Requests and connections to targets of users and operators", "what");
  const users = instrumentedClient(connections.users, (what, ...how) => sent.observe(`users ${what}`, ...how));
  const operators = instrumentedClient(connections.operators, (what, ...how) =>
    sent.observe(`operators ${what}`, ...how),
  );
  return {
    name: "egress",
    gives: {
      egress: { users, operators },
      operatorEgress: operators,
      allowedEgress: allowEgress,
      ownListeners: () => listenersAt(ownAddresses, [...new Set([...fixed, ...changingListeners()])]),
    },
    close: () => connections.close(),
  };
}
