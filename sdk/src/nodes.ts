import type { ServiceNode } from "./responses.ts";
import type { NewNode } from "./requests.ts";
import { NodeMethods } from "./methods.ts";
import type { CallOptions } from "./transport.ts";

/** Nodes of a service; `services.nodes` lists them. */
export class Nodes extends NodeMethods {
  /** Adds a replica; its operation has the progress of copying the data. */
  override add(service: string, node: NewNode = { role: "replica" }, options?: CallOptions): Promise<ServiceNode> {
    return super.add(service, node, options);
  }
}
