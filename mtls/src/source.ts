import { createSourceGroups, type SourceGroup } from "@holdfast/common/source-groups.ts";

const groupsOf = createSourceGroups();

/** What an address is counted in, the narrowest first: an IPv4 address, or the /64, /56 and /48 of an IPv6 one. */
export function sourcesOf(address: string | undefined): readonly SourceGroup[] {
  return groupsOf(address ?? "");
}

/** The same of a host:port as grpc-js names a call's peer. */
export function sourcesOfPeer(peer: string): readonly SourceGroup[] {
  return sourcesOf(peer.slice(0, peer.lastIndexOf(":")).replace(/^\[|\]$/g, ""));
}
