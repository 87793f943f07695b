import type { FailoverFixture, FixtureKind } from "./failover-fixture.ts";

/** The roles at the moment of the fault. */
export type Before = Awaited<ReturnType<FailoverFixture["roles"]>> & { readonly operations: ReadonlySet<string> };

/** One fault of a primary. */
export interface FailoverFault {
  readonly name: string;
  /** Expected primary after the fault: the replica, the same, either of them, or any after several failovers. */
  readonly expects: "failover" | "none" | "either" | "several";
  /** Kinds of services that it applies to; all of them when absent. */
  readonly kinds?: readonly FixtureKind[];
  /** True if the fault affects parts that all services share, so that no other fault runs concurrently. */
  readonly isExclusive?: boolean;
  /** Calls `strikes` at the moment of the fault, and resolves when it is repaired. */
  run(fixture: FailoverFixture, before: Before, markFault: () => number): Promise<void>;
}
