import type { IncomingHttpHeaders } from "node:http";

/** An answer of the REST API, as it came. */
export interface RestAnswer<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body; an empty object when there is none. */
  readonly json: T;
}
