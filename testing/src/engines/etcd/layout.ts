import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Instance } from "@holdfast/agent/engines/engine-driver.ts";
import { membersOf, ownMember } from "@holdfast/agent/engines/members.ts";
import type { Member } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { EtcdTarget } from "./api.ts";

const peerPort = 2380;

type Files = Pick<Instance, "paths">;

/** Directory of the agent's own files, in which the engine has its data. */
export const ownDirectory = ({ paths }: Files): string => join(paths.data, "etcd");
export const dataDirectory = (instance: Files): string => join(ownDirectory(instance), "data");
/** Members that the engine finds at its first start; formed and joined data have one. */
export const initialFile = (instance: Files): string => join(ownDirectory(instance), "initial.json");

export interface Initial {
  readonly state: "new" | "existing";
  /** `m-1=http://127.77.0.2:2380,...`. */
  readonly cluster: string;
}

/** Name of a member in the engine, from which its number follows. */
export const nameOf = (number: number): string => `m-${number}`;

/** Number of a member by its name; undefined for a member that was never started. */
export function numberOfName(name: string | undefined): number | undefined {
  const text = /^m-(\d+)$/.exec(name ?? "")?.[1];
  return text === undefined ? undefined : Number(text);
}

/** Peers connect without TLS, since etcd requires addresses in certificates, and members' have names. */
export const peerUrl = (address: string): string => `http://${address}:${peerPort}`;
export const clientUrl = ({ spec }: Pick<Instance, "spec">): string => `https://${spec.address}:${spec.port}`;

export function readInitial(instance: Files): Initial {
  return JSON.parse(readFileSync(initialFile(instance), "utf8")) as Initial;
}

/** Number of the instance's member in its service. */
export function ownNumber(instance: Pick<Instance, "spec">): number {
  return ownMember(instance)?.number ?? 0;
}

/** Client address of a member, with the trust of the instance that calls it. */
export function targetOf({ spec, paths }: Instance, member: Pick<Member, "address" | "hostname">): EtcdTarget {
  const ca = readFileSync(join(paths.tls, "ca.crt"), "utf8");
  return { address: member.address, port: spec.port, serverName: member.hostname, ca };
}

/** Client address of the instance's member. */
export function ownTarget(instance: Instance): EtcdTarget {
  const member = ownMember(instance);
  if (member === undefined) throw new Error("the settings do not list this member");
  return targetOf(instance, { address: instance.spec.address, hostname: member.hostname });
}

/** Members with an address, by their numbers. */
export function addressedMembers(instance: Pick<Instance, "spec">): Member[] {
  return membersOf(instance.spec).filter(({ address }) => address !== "");
}
