import type { ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Endpoint } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { MachineObject } from "./machine/machine.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import type { Membership } from "#kernel/runtime/membership.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Store } from "#kernel/store/store.ts";
import type { FleetLimits } from "./fleet-limits.ts";
import type { Fleet } from "./fleet.ts";
import type { ObjectUrlGrants } from "./object-urls.ts";
import type { PayloadStore } from "./payload/payload-store.ts";
import type { RightRules } from "./session/rights.ts";
import type { SampleSink } from "./session/sample-sink.ts";
import type { SessionFacts } from "./session/session-facts.ts";
import type { TaskObject } from "./task/task-object.ts";

/** A service of the fleet's listener. */
export interface FleetService {
  readonly definition: ServiceDefinition;
  readonly implementation: UntypedServiceImplementation;
}

export interface FleetDeps {
  /** This controller among the others; streams hang on its lease. */
  readonly membership: Membership;
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
  /** 0 takes a free one. */
  readonly port: number;
  /** Where it listens besides. */
  readonly alsoListen?: readonly Endpoint[];
  /** host:port that agents and controllers dial; by default where it listens. */
  readonly advertise?: string;
  readonly limits?: Partial<FleetLimits>;
  /** True while the store may know less than the agents do, after a restore. Default: never. */
  readonly storeMayBeBehind?: () => boolean;
  /** Takes what machines were like; without it they keep their samples. */
  readonly samples?: SampleSink;
  /** Lets machines at the object store; without it they are told that there is none. */
  readonly urlGrants?: ObjectUrlGrants;
  /** Decides which machine may be a primary; without it no machine gets a right. */
  readonly rightRules?: RightRules;
  /** Other services on the same listener, such as the zone's. */
  readonly services?: readonly FleetService[];
}

/** The fleet with its listener, as main starts and stops it. */
export interface RunningFleet extends Fleet {
  readonly port: number;
  readonly advertise: string;
  /** Every agent stream, with who holds it. */
  sessions(): IterableIterator<[machineId: string, facts: SessionFacts]>;
  /** Streams held here. */
  readonly held: number;
  /** Requests for the right to be a primary since the start, by how they were answered. */
  rightsAnswered(): Iterable<readonly [answer: string, count: number]>;
  /** host:port of every controller's listener. */
  readonly controllers: readonly string[];
  probeTransfer(
    machineId: string,
    sizeBytes: number,
    signal?: AbortSignal,
  ): Promise<{ durationMs: number; sha256: string }>;
  close(): Promise<void>;
}
