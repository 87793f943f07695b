import type { IncomingHttpHeaders } from "node:http";

/** A response of the REST API, unchanged. */
export interface RestResponse<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The parsed body; an empty object when there is none. */
  readonly json: T;
}
