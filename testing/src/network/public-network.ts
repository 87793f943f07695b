import { freePorts } from "../platform/free-ports.ts";

/**
 * A network of 14 public addresses that no other test of this host has while this process lives: on loopback, below the
 * blocks of installations; or routed, from a range that no host of ours uses.
 */
export async function testPublicNetwork(kind: "loopback" | "routed" = "loopback"): Promise<string> {
  const [port = 0] = await freePorts(1);
  const [first, second] = kind === "loopback" ? [127, 10] : [100, 64];
  return `${first}.${second + (port >> 12)}.${(port >> 4) & 255}.${(port & 15) * 16}/28`;
}
