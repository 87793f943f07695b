import type { FailoverGround, GroundKind } from "./failover-ground.ts";

/** The roles when the fault came. */
export type Before = Awaited<ReturnType<FailoverGround["roles"]>> & { readonly operations: ReadonlySet<string> };

/** One fault of a primary. */
export interface FailoverFault {
  readonly name: string;
  /** Who is the primary after it: the replica, the same, either of them, or any after several failovers. */
  readonly expects: "failover" | "none" | "either" | "several";
  /** Of which services; all of them when absent. */
  readonly kinds?: readonly GroundKind[];
  /** It meets parts that all services share, so nothing else is played meanwhile. */
  readonly isAlone?: boolean;
  /** Calls `strikes` at the moment of the fault, and resolves when what it broke is mended. */
  run(ground: FailoverGround, before: Before, strikes: () => number): Promise<void>;
}
