import type { ServiceNode } from "./answers.ts";
import type { NewNode } from "./inputs.ts";
import { NodeMethods } from "./methods.ts";
import type { CallOptions } from "./transport.ts";

/** Nodes of a service; `services.nodes` lists them. */
export class Nodes extends NodeMethods {
  /** Adds a replica; its operation tells how far its copy of the data is. */
  override add(service: string, node: NewNode = { role: "replica" }, options?: CallOptions): Promise<ServiceNode> {
    return super.add(service, node, options);
  }
}
