import { isIP } from "node:net";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { PolicyRule } from "@holdfast/compute/compute-provider.ts";
import type { RegisteredController, ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { PolicySource } from "./policy-source.ts";

/** Policy source that lets every machine connect to the controllers. */
export function createControllerPolicy(
  controllerRegistry: Pick<ControllerRegistry, "controllers" | "subscribe">,
): PolicySource {
  return {
    name: "controllers",
    rulesOn: () => controllerRulesOf(controllerRegistry.controllers()),
    subscribe: (onChange) => controllerRegistry.subscribe(() => onChange()),
  };
}

/**
 * Rules that let every machine connect to the listener of every controller, including draining ones. A controller whose
 * address is a name gets no rule.
 */
export function controllerRulesOf(members: readonly RegisteredController[]): PolicyRule[] {
  return members.flatMap(({ id, address }) => {
    if (address === "") return [];
    const { host: to, port } = endpointOf(address);
    const family = isIP(to);
    return family === 0
      ? []
      : [{ owner: { kind: "controller", id }, to, port, from: [family === 4 ? "0.0.0.0/0" : "::/0"] }];
  });
}
