import { isIP } from "node:net";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { ReachRule } from "@holdfast/compute/compute-provider.ts";
import type { Member, Membership } from "#kernel/runtime/membership.ts";
import type { ReachOwner } from "./reach-owner.ts";

/** Policy source that lets every machine connect to the controllers. */
export function createControllerPolicy(membership: Pick<Membership, "members" | "subscribe">): ReachOwner {
  return {
    rulesOn: () => controllerRulesOf(membership.members()),
    subscribe: (onChange) => membership.subscribe(() => onChange()),
  };
}

/**
 * Pure: every machine may connect to the listener of every controller, draining ones included. A controller whose
 * address is a name gets no rule.
 */
export function controllerRulesOf(members: readonly Member[]): ReachRule[] {
  return members.flatMap(({ id, address }) => {
    if (address === "") return [];
    const { host: to, port } = endpointOf(address);
    const family = isIP(to);
    return family === 0
      ? []
      : [{ owner: { kind: "controller", id }, to, port, from: [family === 4 ? "0.0.0.0/0" : "::/0"] }];
  });
}
