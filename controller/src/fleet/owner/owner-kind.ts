import { contributionPoint } from "#kernel/contribution-point.ts";
import type { Monitoring } from "./monitored-owner.ts";

/** The object that owns a machine: the name of its kind, and its id. */
export interface MachineOwner {
  readonly kind: string;
  readonly id: string;
}

/** An owner that exists. */
export interface OwnerDescription {
  /** Name for operators, such as `orders`. */
  readonly name: string;
  /** Empty for an owner that belongs to the platform. */
  readonly organizationId: string;
}

/** Facts about a machine on a host that is being drained. */
export interface DrainedMachine {
  /** True if the owner has further machines, so that a machine on another host can replace it. */
  readonly hasOthers: boolean;
  /** True if the operator consents to stop owners with one machine until the drain ends. */
  readonly mayStop: boolean;
}

/**
 * The effect of a drain on a machine. Moves: its owner replaces it on another host. Stops: its owner stops it until the
 * drain ends. Ends: its owner deletes it, with or without a drain. Blocks: it remains until its owner or an operator
 * acts.
 */
export interface DrainResult {
  readonly outcome: "moves" | "stops" | "ends" | "blocks";
  /** Sentences for operators: the reason why the machine still runs, and the remedy. */
  readonly reason: string;
}

/** A kind of object that owns machines, such as services. Its system contributes it. */
export interface OwnerKind {
  /** Name of the kind. */
  readonly kind: string;
  /** Noun in texts, such as `service`; with an `s` it is the plural. */
  readonly noun: string;
  /** Verb of the remedy that frees its machines: `Delete` makes `Delete the service`. */
  readonly remedy: string;
  /** Name and organization of the owner; undefined if it does not exist. */
  describe(id: string): OwnerDescription | undefined;
  /** True if no data is lost with the owner's machines: a destroyed host is removed without naming the owner. */
  isReplaceable(id: string): boolean;
  /**
   * The effect of a destroyed host on a machine of the owner. Retains: the machine's object remains, as failed, until
   * the owner deletes it, so that no empty machine replaces lost data. Deletes: the object is deleted, and the owner
   * may create another machine.
   */
  onHostLost(id: string): "retains" | "deletes";
  drain(id: string, machine: DrainedMachine): DrainResult;
  /** Monitoring of the owners; absent: they have no alert rules, exports, health, logs and metrics in the API. */
  readonly monitoring?: Monitoring;
}

export const ownerKinds = contributionPoint<OwnerKind>("owners of machines", { key: ({ kind }) => kind });
