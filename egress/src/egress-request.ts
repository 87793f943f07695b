import type { Readable } from "node:stream";
import type { TlsOptions } from "./guarded-connector.ts";

/** A body that is sent as it stands, and what else every request has. */
export interface EgressPost {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  /** For all of it, up to the end of the answer's body. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  /** Whose request it is: connections are not shared with other organizations. Absent for the platform's own. */
  readonly organizationId?: string | undefined;
  readonly tls?: TlsOptions | undefined;
}

export interface EgressRequest extends Omit<EgressPost, "body"> {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** A stream is sent as it comes, no faster than the target reads. */
  readonly body?: string | Uint8Array | Readable | undefined;
  /** Of the answer's body, 1 MiB unless given. */
  readonly bytesMax?: number | undefined;
}
