import { addressNetworkOf } from "@holdfast/compute/local/address-network.ts";
import { UserError } from "./user-error.ts";

/** `--public-addresses`, or its environment variable: a network, `none`, or undefined. Throws a UserError for anything else. */
export function readPublicAddresses(
  flags: Readonly<Record<string, string | undefined>>,
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const text = flags["public-addresses"] ?? environment["HOLDFAST_PUBLIC_ADDRESSES"];
  if (text === undefined || text === "" || text === "none") return text;
  try {
    return addressNetworkOf(text).text;
  } catch (error) {
    throw new UserError(`--public-addresses: ${(error as Error).message}`);
  }
}

/** What an installation or a host keeps of the wish: the network that it named last; nothing after `none`. */
export function keptPublicAddresses(
  before: { readonly public_addresses?: string },
  wished: string | undefined,
): { readonly public_addresses?: string } {
  const kept = wished ?? before.public_addresses;
  return kept === undefined || kept === "none" ? {} : { public_addresses: kept };
}
