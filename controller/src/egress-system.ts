import { list, type ValuesOf } from "@holdfast/common/config.ts";
import { createEgress, type Egress, listenersAt } from "@holdfast/egress/create-egress.ts";
import { instrumentedClient } from "@holdfast/egress/egress-client.ts";
import { type InferenceProcess, inferenceProcessKind } from "#inference/process/inference-process.ts";
import { type FleetSystem, fleetPart } from "#fleet/fleet-system.ts";
import type { HostObject } from "#fleet/host/host.ts";
import type { MachineStatus } from "#fleet/machine/machine.ts";
import type { Use } from "#kernel/assembly.ts";
import { type Installation, installationPart } from "#kernel/installation.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { ProcessMetrics } from "#kernel/metrics/process-metrics.ts";
import { definePart } from "#kernel/part.ts";
import type { RegisteredController } from "#kernel/runtime/controller-registry.ts";
import { checkedListeners } from "#kernel/runtime/listener-reports.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";

const egressSettings = {
  allowEgress: list(
    "HOLDFAST_ALLOW_EGRESS",
    "Networks (CIDRs) that are not public, but to which URLs of users, such as webhooks, may refer",
  ),
  operatorEgress: list(
    "HOLDFAST_OPERATOR_EGRESS",
    "Networks (CIDRs) that are not public, but may have servers that operators configure, such as for mail",
  ),
} as const;

/** Clients for targets that users and operators choose, and the targets that are refused. */
export interface EgressSystem extends Pick<Egress, "users" | "operators"> {
  /** Networks that are not public but allowed for users' URLs. */
  readonly allowed: readonly string[];
  /** host:port of every current listener of the installation. */
  readonly ownListeners: () => readonly string[];
}

export const egressPart = definePart<EgressSystem>("egress");

/** Connects to targets that users and operators choose, but never to the platform's servers and machines. */
export const egressSystem = declareSystem({
  name: "egress",
  settings: egressSettings,
  provides: [egressPart],
  open: openEgressSystem,
});

function openEgressSystem(
  { collections, controllerRegistry, etcdMembers, metrics }: Kernel,
  use: Use,
  settings: ValuesOf<typeof egressSettings>,
): System {
  const fleet = use(fleetPart);
  const proxies = collections.open(inferenceProcessKind);
  const { close, ...egress } = openEgress(
    {
      ...use(installationPart),
      fleet,
      hosts: () => fleet.hosts.values(),
      machines: () => fleet.machines.values(),
      proxies: () => proxies.values(),
      controllers: controllerRegistry.controllers,
      etcdMembers,
      metrics,
    },
    settings,
  );
  return { name: "egress", provides: [egressPart.of(egress)], close };
}

type Objects<T> = () => Iterable<{ readonly object: T }>;

/** Servers and machines of the installation, to which URLs of users must not refer. */
interface EgressSources extends Pick<Installation, "listeners" | "ownAddresses"> {
  readonly fleet: Pick<FleetSystem, "listeners" | "loopbackBlock">;
  readonly hosts: Objects<Pick<HostObject, "spec" | "status">>;
  readonly machines: Objects<{ readonly status: Pick<MachineStatus, "address" | "publicAddress"> }>;
  readonly proxies: Objects<{ readonly status: Pick<InferenceProcess["status"], "listeners"> }>;
  readonly controllers: () => readonly Pick<RegisteredController, "address" | "listeners">[];
  readonly etcdMembers: { readonly listeners: readonly string[] };
  readonly metrics: Pick<ProcessMetrics, "times">;
}

export function openEgress(
  sources: EgressSources,
  { allowEgress, operatorEgress }: ValuesOf<typeof egressSettings>,
): EgressSystem & { close(): Promise<void> } {
  const { listeners, ownAddresses, fleet, etcdMembers } = sources;
  const changingListeners = () =>
    [
      ...etcdMembers.listeners,
      ...sources.controllers().flatMap(({ address, listeners: reported = [] }) => [address, ...reported]),
      ...[...sources.proxies()].flatMap(({ object: { status } }) => status.listeners ?? []),
      ...[...sources.hosts()].flatMap(({ object: { spec, status } }) => [
        spec.address,
        ...checkedListeners(status.facts?.listeners ?? []),
      ]),
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
        [...sources.machines()].flatMap(({ object: { status } }) => [status.address, status.publicAddress]),
    },
  );
  const sent = sources.metrics.times(
    "egress_seconds",
    "Requests and connections to targets of users and operators",
    "what",
  );
  const users = instrumentedClient(connections.users, (operation, ...measurement) =>
    sent.observe(`users ${operation}`, ...measurement),
  );
  const operators = instrumentedClient(connections.operators, (operation, ...measurement) =>
    sent.observe(`operators ${operation}`, ...measurement),
  );
  return {
    users,
    operators,
    allowed: allowEgress,
    ownListeners: () => listenersAt(ownAddresses, [...new Set([...fixed, ...changingListeners()])]),
    close: () => connections.close(),
  };
}
