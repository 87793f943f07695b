import { readFileSync } from "node:fs";

/**
 * True if no network of this host, except for the default route, overlaps the block of these first two octets. Routes
 * that reject packets do not count.
 */
export function isUnrouted(block: string, table = readFileSync("/proc/net/route", "utf8")): boolean {
  return !routesOf(table).some(({ network, mask }) => {
    const [address, both] = [numberOf(`${block}.0.0`), (mask & 0xffff_0000) >>> 0];
    return mask !== 0 && (address & both) >>> 0 === (network & both) >>> 0;
  });
}

/** RTF_REJECT of linux/route.h. */
const rejectFlag = 0x0200;

interface Route {
  readonly network: number;
  readonly mask: number;
}

/** Networks in the text of /proc/net/route, whose numbers have the address bytes in reverse. */
export function routesOf(text: string): Route[] {
  return text
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields.length >= 8 && (Number.parseInt(fields[3] ?? "0", 16) & rejectFlag) === 0)
    .map((fields) => ({ network: reversed(fields[1] ?? "0"), mask: reversed(fields[7] ?? "0") }));
}

function reversed(hex: string): number {
  return Buffer.from(hex.padStart(8, "0"), "hex").readUInt32LE();
}

function numberOf(address: string): number {
  return address.split(".").reduce((sum, byte) => sum * 256 + Number(byte), 0);
}
