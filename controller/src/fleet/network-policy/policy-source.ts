import type { PolicyRule } from "@holdfast/compute/compute-provider.ts";
import { contributionPoint } from "#kernel/contribution-point.ts";

/** A source of network policy rules: who may connect to some machines, or where all machines may connect to. */
export interface PolicySource {
  /** The owner of its rules, such as the name of a kind. */
  readonly name: string;
  /** Its rules for one host. Connections that no rule of any source allows are denied. */
  rulesOn(hostId: string): readonly PolicyRule[];
  /** Calls back with the hosts whose rules may have changed; without an argument for all hosts. */
  subscribe(onChange: (hostIds?: ReadonlySet<string>) => void): { close(): void };
}

/** Sources of rules besides those of the fleet itself. */
export const networkPolicies = contributionPoint<PolicySource>("network policies", { key: ({ name }) => name });
