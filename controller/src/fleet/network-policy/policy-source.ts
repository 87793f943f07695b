import type { PolicyRule } from "@holdfast/compute/compute-provider.ts";
import { contributionPoint } from "#kernel/contribution-point.ts";

/** A source of network policy rules: connections to some machines, or connections of all machines to an address. */
export interface PolicySource {
  /** Name of the source, such as the kind of the owners of its rules. */
  readonly name: string;
  /** The rules for one host. Connections that no rule of any source allows are denied. */
  rulesOn(hostId: string): readonly PolicyRule[];
  /** Calls back with the hosts whose rules may have changed; without an argument for all hosts. */
  subscribe(onChange: (hostIds?: ReadonlySet<string>) => void): { close(): void };
}

/** Sources of rules in other groups, besides the sources of the fleet itself. */
export const networkPolicies = contributionPoint<PolicySource>("network policies", { key: ({ name }) => name });
