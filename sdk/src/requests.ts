import type { Transport } from "./transport.ts";

/** What sends the requests of its methods through a transport. */
export abstract class Requests {
  protected readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
  }
}
