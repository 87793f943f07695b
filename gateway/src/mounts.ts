import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Exchange } from "./exchange.ts";

/** A part of the listener, such as /docs. The first mount that matches a request handles it. */
export interface Mount {
  readonly name: string;
  /** Host names that the mount serves; undefined for all. */
  readonly hosts?: readonly string[];
  /** Prefix of the paths that the mount serves; "/" for all. */
  readonly prefix: string;
  /** Narrows the match, for mounts that share a prefix. */
  accepts?(exchange: Exchange): boolean;
  /** Authenticates and limits the caller, and sends the response; `fail` sends an error that it throws. */
  handle(exchange: Exchange): Promise<void>;
  /** Sends an error in the format of the mount. */
  fail(exchange: Exchange, error: HoldfastError): void;
}

/**
 * Dispatches each request to its mount. An unexpected error is passed to `onUnknown` for the log; the caller gets
 * INTERNAL without details.
 */
export function createDispatch(
  mounts: readonly Mount[],
  onUnknown: (exchange: Exchange, mount: Mount, error: unknown) => void,
): (exchange: Exchange) => Promise<void> {
  return async (exchange) => {
    const mount = mounts.find((candidate) => matches(candidate, exchange));
    if (mount === undefined) throw new Error("no mount serves the path; the last one must serve all");
    try {
      await mount.handle(exchange);
    } catch (thrown) {
      const error = HoldfastError.from(thrown);
      if (error.key === "INTERNAL") onUnknown(exchange, mount, thrown);
      mount.fail(exchange, error);
    }
  };
}

function matches({ hosts, prefix, accepts }: Mount, exchange: Exchange): boolean {
  if (hosts !== undefined && !hosts.includes(hostOf(exchange))) return false;
  return exchange.path.startsWith(prefix) && (accepts === undefined || accepts(exchange));
}

/** The requested host name in lower case, without the port. */
function hostOf({ request }: Exchange): string {
  const host = request.headers.host ?? request.headers[":authority"] ?? "";
  return host.toString().replace(/:\d+$/, "").toLowerCase();
}
