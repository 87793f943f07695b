import { setTimeout as sleep } from "node:timers/promises";
import type { EtcdMember } from "@holdfast/testing/platform/etcd-members.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { FailoverFault } from "./failover-fault.ts";
import type { FailoverFixture } from "./failover-fixture.ts";

/** Duration of an outage: more than the lease of a controller, and than any primary lease. */
const awayMs = 10_000;

/** The members that a fault removes, in order. */
type Victims = (fixture: FailoverFixture) => Promise<readonly EtcdMember[]>;

const leader: Victims = async ({ etcd }) => [await etcd.leader()];
const everyFollower: Victims = ({ etcd }) => etcd.followers();
const oneFollower: Victims = async ({ etcd, random }) => [random.pick(await etcd.followers())];

type Remove = (member: EtcdMember) => Promise<() => unknown>;

const lose: Remove = (member) => member.lose();
const pause: Remove = async (member) => member.pause();

/** Removes one of three members while all services are healthy: no primary changes, and the API accepts changes. */
async function continueWithout(fixture: FailoverFixture, member: EtcdMember, take: Remove): Promise<void> {
  const repair = await take(member);
  const untilMs = performance.now() + awayMs;
  try {
    for (let change = 1; change === 1 || performance.now() < untilMs; change += 1) {
      const body = { tags: { change: `${change}`, without: member.name } };
      const isTaken = async () => (await fixture.platform.rest.patch(fixture.path(""), body)).status === 200;
      await waitUntil(`a change is taken without ${member.name} of etcd`, isTaken, { withinMs: 30_000 });
      // Time: the rate of the changes while the member is away.
      await sleep(500);
    }
  } finally {
    await repair();
  }
}

const without = (victims: Victims, name: string, take: Remove): FailoverFault => ({
  name,
  expects: "none",
  isExclusive: true,
  async run(fixture, _, markFault) {
    const members = await victims(fixture);
    markFault();
    for (const member of members) await continueWithout(fixture, member, take);
  },
});

/** Pauses the primary's machine, and removes one of three members from this step until the failover ends. */
const lostAt = (step: string, name: string, victims: Victims): FailoverFault => ({
  name: `machine paused, ${name} lost at ${step}`,
  expects: "failover",
  isExclusive: true,
  async run(fixture, { primary, newHost, operations }, markFault) {
    const [member] = await victims(fixture);
    if (member === undefined) throw new Error("etcd has no such member");
    const mendMachine = fixture.pause(fixture.pidsOf(primary, "machine"));
    const atMs = markFault();
    let repair: () => Promise<void> = async () => {};
    try {
      await fixture.reaches(step, operations);
      repair = await member.lose();
      await fixture.acceptsWrites(newHost, atMs);
      await fixture.ends(operations);
    } finally {
      await repair();
      mendMachine();
    }
  },
});

/** Faults of one of the three members of etcd, alone or during a change of the primary. */
export const etcdFaults: readonly FailoverFault[] = [
  without(leader, "etcd's leader is lost for 10 s", lose),
  without(everyFollower, "each other member of etcd is lost for 10 s", lose),
  without(leader, "etcd's leader paused for 10 s", pause),
  without(everyFollower, "each other member of etcd paused for 10 s", pause),
  {
    name: "etcd's leader is moved again and again",
    expects: "none",
    isExclusive: true,
    async run({ etcd }, _, markFault) {
      markFault();
      for (let moves = 0; moves < 10; moves += 1) {
        await etcd.moveLeader();
        // Time: the rate of the moves.
        await sleep(1_000);
      }
    },
  },
  lostAt("FencePrimary", "etcd's leader", leader),
  lostAt("PromoteReplica", "etcd's leader", leader),
  lostAt("FencePrimary", "another member of etcd", oneFollower),
  {
    name: "machine paused, while a member of etcd is down",
    expects: "failover",
    isExclusive: true,
    async run(fixture, { primary, newHost, operations }, markFault) {
      const repair = await fixture.random.pick(fixture.etcd.all).lose();
      try {
        const mendMachine = fixture.pause(fixture.pidsOf(primary, "machine"));
        try {
          await fixture.acceptsWrites(newHost, markFault());
          await fixture.ends(operations);
        } finally {
          mendMachine();
        }
      } finally {
        await repair();
      }
    },
  },
  {
    name: "machine paused, etcd's leader is moved at each step",
    expects: "failover",
    isExclusive: true,
    async run(fixture, { primary, newHost, operations }, markFault) {
      const repair = fixture.pause(fixture.pidsOf(primary, "machine"));
      const atMs = markFault();
      try {
        for (const step of ["FencePrimary", "PromoteReplica", "MoveDNS"]) {
          await fixture.reaches(step, operations);
          await fixture.etcd.moveLeader();
        }
        await fixture.acceptsWrites(newHost, atMs);
        await fixture.ends(operations);
      } finally {
        repair();
      }
    },
  },
];
