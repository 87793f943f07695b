import type { CatalogData } from "#catalog/catalog.ts";
import type { MachineStatus } from "#fleet/machine/machine.ts";
import type { DatabaseUserObject } from "../contents/user/database-user.ts";
import type { ManagedServiceObject, NodeSpec } from "./managed-service.ts";

/** Inputs of an instance spec. */
export interface SpecArgs {
  readonly service: ManagedServiceObject;
  readonly node: NodeSpec;
  /** Addresses of the node's machine. */
  readonly addresses: Pick<MachineStatus, "address" | "publicAddress">;
  /** Private address of a member; empty until its machine is created. */
  readonly addressOf: (nodeId: string) => string;
  readonly users: readonly DatabaseUserObject[];
  readonly replicationSecret: string;
  /** The decrypted password of a user. */
  readonly passwordOf: (user: DatabaseUserObject) => string;
  readonly catalog: CatalogData;
  readonly running: boolean;
  readonly generation: number;
  /**
   * Version of the lease protocol that the agent supports. From version 1 it requests leases, and its keeper stops an
   * engine whose lease has expired.
   */
  readonly leaseProtocol: number;
  /** Memory of the node's machine while it has more than its plan, for a restore; 0 otherwise. */
  readonly recoveryMemoryBytes: number;
}
