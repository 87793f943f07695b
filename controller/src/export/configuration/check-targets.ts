import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import { parseTarget } from "@holdfast/egress/target.ts";
import type { Destination, VendorUrls } from "../destinations/destination.ts";
import type { Configuration } from "../metrics-export.ts";

interface Deps {
  readonly egress: Pick<EgressClient, "check">;
  readonly vendors: VendorUrls;
}

/**
 * Throws TARGET_NOT_ALLOWED for a URL whose host has a forbidden address, and NOT_POSSIBLE if neither the
 * configuration nor the installation has a base URL. Host names are checked again at each connection.
 */
export async function checkTargets(
  destination: Destination,
  configuration: Configuration,
  { egress, vendors }: Deps,
  signal: AbortSignal,
): Promise<void> {
  if (destination.vendorBase?.(configuration, vendors) === "")
    throw new HoldfastError(
      "NOT_POSSIBLE",
      `This installation has no default URL for ${destination.type}: set configuration.endpoint.`,
    );
  for (const [key, { kind }] of Object.entries(destination.fields)) {
    const url = lookUp(configuration, key);
    if (kind !== "url" || typeof url !== "string") continue;
    const parsed = parseTarget(url);
    if (!parsed.ok)
      throw new HoldfastError("TARGET_NOT_ALLOWED", `configuration.${key} cannot be a destination: ${parsed.detail}.`);
    try {
      await egress.check(parsed.target, signal);
    } catch (cause) {
      if (!(cause instanceof EgressFailure)) throw cause;
      const detail = `configuration.${key} has a forbidden address: exports must not connect to it.`;
      throw new HoldfastError("TARGET_NOT_ALLOWED", detail, { cause });
    }
  }
}
