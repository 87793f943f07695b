import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Exchange } from "./exchange.ts";

/** One part of the port's API. Mounts are asked in order; the first match answers. */
export interface Mount {
  readonly name: string;
  /** Host names that it is for; undefined means any. */
  readonly hosts?: readonly string[];
  /** Takes paths that begin so; "/" takes all. */
  readonly prefix: string;
  /** Narrows further, for mounts that share a prefix. */
  accepts?(exchange: Exchange): boolean;
  /** Answers, or throws an error that `fail` shows. It authenticates and limits callers itself. */
  handle(exchange: Exchange): Promise<void>;
  /** Shows an error in the mount's own format. */
  fail(exchange: Exchange, error: HoldfastError): void;
}

/**
 * Gives each request to its mount. Unexpected errors go to `onUnknown` once, and show nothing of themselves to the
 * caller.
 */
export function createDispatch(
  mounts: readonly Mount[],
  onUnknown: (exchange: Exchange, mount: Mount, error: unknown) => void,
): (exchange: Exchange) => Promise<void> {
  return async (exchange) => {
    const mount = mounts.find((candidate) => fits(candidate, exchange));
    if (mount === undefined) throw new Error("no mount takes the path; the last one should take all");
    try {
      await mount.handle(exchange);
    } catch (thrown) {
      const error = HoldfastError.from(thrown);
      if (error.key === "INTERNAL") onUnknown(exchange, mount, thrown);
      mount.fail(exchange, error);
    }
  };
}

function fits({ hosts, prefix, accepts }: Mount, exchange: Exchange): boolean {
  if (hosts !== undefined && !hosts.includes(hostOf(exchange))) return false;
  return exchange.path.startsWith(prefix) && (accepts === undefined || accepts(exchange));
}

/** Name of the host that is asked for, without the port. */
function hostOf({ request }: Exchange): string {
  const host = request.headers.host ?? request.headers[":authority"] ?? "";
  return host.toString().replace(/:\d+$/, "").toLowerCase();
}
