import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import type { Instance } from "@holdfast/agent/engines/engine-driver.ts";
import { membersOf, ownMember } from "@holdfast/agent/engines/members.ts";
import type { PeersFacet } from "@holdfast/agent/engines/peers-facet.ts";

/** Membership on the disk of a member: the numbers of all members, and the way in which it joined. */
export interface FixtureMembership {
  readonly origin: "formed" | "joined";
  readonly members: readonly number[];
}

export const membershipFile = join("fixture", "membership.json");

/**
 * Clusters of the fixture engine: a member reaches another if that accepts connections, and the reachable member with
 * the lowest number leads. A member with the parameter `fails_to_form` leaves incomplete data when it forms a cluster.
 */
export const fixturePeers: PeersFacet = {
  async formCluster(instance) {
    await begin(instance, { origin: "formed", members: membersOf(instance.spec).map(({ number }) => number) });
    if (instance.spec.parameters["fails_to_form"] !== undefined) throw new Error("the cluster is not formed");
  },
  join: (instance) =>
    begin(instance, { origin: "joined", members: membersOf(instance.spec).map(({ number }) => number) }),
  async leave(instance, number) {
    const { origin, members } = await membership(instance);
    await write(instance, { origin, members: members.filter((member) => member !== number) });
  },
  async report(instance, signal) {
    const { members } = await membership(instance);
    const number = ownMember(instance)?.number ?? 0;
    const listed = membersOf(instance.spec).filter(({ number }) => members.includes(number));
    const responses = await Promise.all(listed.map((member) => answersAt(member.address, instance.spec.port, signal)));
    const reachable = listed.filter((_, index) => responses[index]).map(({ number }) => number);
    const hasMajority = 2 * reachable.length > members.length;
    const isSpare = (number: number) =>
      members.length === 1 || 2 * reachable.filter((each) => each !== number).length > members.length;
    return {
      isLeader: hasMajority && Math.min(...reachable) === number,
      quorum: { voters: members.length, reachable: reachable.length, hasMajority },
      inSync: true,
      members,
      safeToRestart: hasMajority ? members.filter(isSpare) : [],
      leaving: [],
    };
  },
};

async function begin(instance: Instance, content: FixtureMembership): Promise<void> {
  await rm(join(instance.paths.data, "fixture"), { recursive: true, force: true });
  await mkdir(join(instance.paths.data, "fixture"), { recursive: true });
  await write(instance, content);
}

async function membership({ paths }: Instance): Promise<FixtureMembership> {
  return JSON.parse(await readFile(join(paths.data, membershipFile), "utf8")) as FixtureMembership;
}

function write({ paths }: Instance, content: FixtureMembership): Promise<void> {
  return writeFile(join(paths.data, membershipFile), JSON.stringify(content));
}

function answersAt(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, signal });
    socket.on("connect", () => resolve(true));
    socket.on("error", () => resolve(false));
    socket.on("connect", () => socket.destroy());
  });
}
