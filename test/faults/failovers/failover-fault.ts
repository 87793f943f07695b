import type { FailoverFixture, FixtureKind } from "./failover-fixture.ts";

/** Roles of the nodes when the fault is injected. */
export type Before = Awaited<ReturnType<FailoverFixture["roles"]>> & { readonly operations: ReadonlySet<string> };

/** A fault that affects a primary. */
export interface FailoverFault {
  readonly name: string;
  /** Expected primary after the fault: the replica, the same, either of them, or any after several failovers. */
  readonly expects: "failover" | "none" | "either" | "several";
  /** Kinds of services that the fault applies to; absent: all. */
  readonly kinds?: readonly FixtureKind[];
  /** True if the fault affects parts that all services share, so that no other fault runs concurrently. */
  readonly isExclusive?: boolean;
  /** Calls `markFault` when the fault begins, and resolves when it is repaired. */
  run(fixture: FailoverFixture, before: Before, markFault: () => number): Promise<void>;
}
