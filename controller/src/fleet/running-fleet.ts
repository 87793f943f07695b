import type { ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { MachineObject } from "./machine/machine.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import { contributionPoint } from "#kernel/contribution-point.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { ReconcilerStatus } from "#kernel/runtime/runner.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Store } from "#kernel/store/store.ts";
import type { FleetLimits } from "./fleet-limits.ts";
import type { Fleet } from "./fleet.ts";
import type { ObjectUrlGrants } from "./object-grants.ts";
import type { PayloadStore } from "./payload/payloads.ts";
import type { ControllerReconcilers } from "./session/controller-reconcilers.ts";
import type { PrimaryLeaseRules } from "./session/primary-leases.ts";
import type { SampleSink } from "./session/sample-sink.ts";
import type { SessionFacts } from "./session/session-facts.ts";
import type { TaskObject } from "./task/task.ts";

/** A gRPC service of the fleet's listener. */
export interface FleetService {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

/** The stream of state that the processes of one data plane follow, served by the fleet's listener. */
export interface Feed {
  /** Name of the data plane. */
  readonly dataPlane: string;
  readonly service: FleetService;
}

export const feeds = contributionPoint<Feed>("feeds", { key: ({ dataPlane }) => dataPlane });

export interface FleetDeps {
  /** The registered controllers, with the lease of this one, under which presence keys of streams are written. */
  readonly controllerRegistry: ControllerRegistry;
  readonly installationId: string;
  readonly store: Store;
  readonly machines: Collection<MachineObject>;
  readonly tasks: Collection<TaskObject>;
  readonly authority: InstallationAuthority;
  readonly sealer: Sealer;
  readonly payloads: PayloadStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly host: string;
  /** Port to listen on; 0 for a free port. */
  readonly port: number;
  /** Additional addresses to listen on. */
  readonly alsoListen?: readonly Endpoint[];
  /** host:port that agents and controllers dial. Default: the listening address. */
  readonly advertise?: string;
  readonly limits?: Partial<FleetLimits>;
  /** True while the store may be older than the agents' state, after a restore. Default: always false. */
  readonly storeMayBeBehind?: () => boolean;
  /** Destination of the samples of machines; without it agents retain their samples. */
  readonly samples?: SampleSink;
  /** Mints URLs of objects for machines; without it such calls fail with UNAVAILABLE. */
  readonly urlGrants?: ObjectUrlGrants;
  /** Decides which machine may be a primary; without it no primary lease is granted. */
  readonly primaryLeaseRules?: PrimaryLeaseRules;
  /** The state of this controller's reconcilers, for other controllers. Default: none. */
  readonly reconcilers?: () => readonly ReconcilerStatus[];
  /** Other services on the same listener, such as the zone service. */
  readonly services?: readonly FleetService[];
}

/** The fleet with its listener, which the fleet system starts and stops. */
export interface RunningFleet extends Fleet {
  readonly port: number;
  readonly advertise: string;
  /** Every agent stream of the fleet, with the controller that has it. */
  sessions(): IterableIterator<[machineId: string, facts: SessionFacts]>;
  /** Number of agent streams of this controller. */
  readonly streamCount: number;
  /** Primary lease requests to this controller since the start, by outcome. */
  primaryLeaseRequests(): Iterable<readonly [answer: string, count: number]>;
  /** host:port of every controller's listener. */
  readonly controllers: readonly string[];
  /** The reconcilers of every other controller, or only reconcilers with failing keys. */
  controllerReconcilers(failing: boolean, signal: AbortSignal): Promise<ControllerReconcilers>;
  probeTransfer(
    machineId: string,
    sizeBytes: number,
    signal?: AbortSignal,
  ): Promise<{ durationMs: number; sha256: string }>;
  close(): Promise<void>;
}
