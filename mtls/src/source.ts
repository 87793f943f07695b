import { createSourceGroups, type SourceGroup } from "@holdfast/common/source-groups.ts";

const groupsOf = createSourceGroups();

/** Source groups of an address, the narrowest first: an IPv4 address, or the /64, /56 and /48 of an IPv6 one. */
export function sourcesOf(address: string | undefined): readonly SourceGroup[] {
  return groupsOf(address ?? "");
}

/** Source groups of a host:port in the form that grpc-js uses for a call's peer. */
export function sourcesOfPeer(peer: string): readonly SourceGroup[] {
  return sourcesOf(peer.slice(0, peer.lastIndexOf(":")).replace(/^\[|\]$/g, ""));
}
