import { isIP } from "node:net";
import { endpointOf } from "@holdfast/common/endpoint.ts";

const unspecified = new Set(["0.0.0.0", "::", ""]);

/** Names and IP addresses for the certificate of a listener: the listen address, the advertised one and localhost. */
export function listenerNames(
  host: string,
  advertise: string | undefined,
): { readonly names: string[]; readonly addresses: string[] } {
  const dialed = advertise === undefined ? undefined : endpointOf(advertise).host;
  const all = ["localhost", "127.0.0.1", host, ...(dialed === undefined ? [] : [dialed])];
  const isAddress = (name: string) => isIP(name) !== 0;
  const usable = [...new Set(all)].filter((name) => !unspecified.has(name));
  return { names: usable.filter((name) => !isAddress(name)), addresses: usable.filter(isAddress) };
}
