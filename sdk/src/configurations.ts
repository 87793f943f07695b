import type { Configuration, ParameterChange } from "./configuration-types.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** Tuning parameters of the engine of a service. */
export class Configurations {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  get(serviceId: string, options?: CallOptions): Promise<Configuration> {
    return this.#transport.request("GET", pathOf("managed-services", serviceId, "configuration"), options);
  }

  /** null resets a parameter; one bad value rejects all. */
  update(serviceId: string, parameters: ParameterChange, options?: CallOptions): Promise<Configuration> {
    const path = pathOf("managed-services", serviceId, "configuration");
    return this.#transport.request("PATCH", path, { ...options, body: { parameters } });
  }
}
