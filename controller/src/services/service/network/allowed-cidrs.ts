import type { FieldFault } from "@holdfast/common/errors.ts";
import { pointerOf } from "@holdfast/common/errors.ts";
import ipaddr from "ipaddr.js";

const octet = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
const four = `${octet}(\\.${octet}){3}`;
const part = "[0-9a-fA-F]{1,4}";
const six = [
  `(${part}:){7}${part}`,
  `(${part}:){1,7}:`,
  ...[6, 5, 4, 3, 2, 1].map((before) => `(${part}:){1,${before}}(:${part}){1,${7 - before}}`),
  `:(:${part}){1,7}`,
  "::",
  `::([fF]{4}(:0{1,4})?:)?${four}`,
].join("|");

/** JSON Schema of a network (CIDR). */
export const cidrSchema = {
  pattern: `^(${four}(/(3[0-2]|[12]?[0-9]))?|(${six})(/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))?)$`,
};

/**
 * Networks in canonical form: host bits cleared, IPv6 compressed, a bare address as a network of one, duplicates
 * removed; for example `203.0.113.0/24`. Each fault names the invalid entry.
 */
export function canonicalCidrs(texts: readonly string[]): { cidrs: string[]; faults: FieldFault[] } {
  const faults: FieldFault[] = [];
  const cidrs = new Set<string>();
  texts.forEach((text, index) => {
    const canonical = canonicalCidr(text);
    if (canonical !== undefined) {
      cidrs.add(canonical);
      return;
    }
    const field = `allowed_cidrs[${index}]`;
    const detail = `must be an IPv4 or IPv6 network such as 203.0.113.0/24 or 2001:db8::/32, not ${quoted(text)}`;
    faults.push({ field, pointer: pointerOf(field), code: "invalid_cidr", detail });
  });
  return { cidrs: [...cidrs], faults };
}

const textMax = 64;

function quoted(text: string): string {
  return JSON.stringify(text.length > textMax ? `${text.slice(0, textMax).toWellFormed()}…` : text);
}

function canonicalCidr(text: string): string | undefined {
  // Programs disagree about short and octal forms of IPv4, so only four decimal parts are accepted.
  if (!/^(\d{1,3}(\.\d{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)(\/\d{1,3})?$/.test(text)) return undefined;
  if (/(^|[.:])0\d+\.|\.0\d/.test(text)) return undefined;
  const withLength = text.includes("/") ? text : `${text}/${text.includes(":") ? 128 : 32}`;
  if (!ipaddr.isValidCIDR(withLength)) return undefined;
  const [address, length] = ipaddr.parseCIDR(withLength);
  const network =
    address.kind() === "ipv4"
      ? ipaddr.IPv4.networkAddressFromCIDR(withLength)
      : ipaddr.IPv6.networkAddressFromCIDR(withLength);
  return `${network.toString()}/${length}`;
}
