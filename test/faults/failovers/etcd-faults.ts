import { setTimeout as sleep } from "node:timers/promises";
import type { EtcdMember } from "../../support/platform/etcd-members.ts";
import { waitUntil } from "../../support/wait-until.ts";
import type { FailoverFault } from "./failover-fault.ts";
import type { FailoverGround } from "./failover-ground.ts";

/** Longer than the lease of a controller, and than any right. */
const awayMs = 10_000;

/** The members that a fault takes away, one after the other. */
type Victims = (ground: FailoverGround) => Promise<readonly EtcdMember[]>;

const leader: Victims = async ({ etcd }) => [await etcd.leader()];
const everyFollower: Victims = ({ etcd }) => etcd.followers();
const oneFollower: Victims = async ({ etcd, random }) => [random.pick(await etcd.followers())];

type Take = (member: EtcdMember) => Promise<() => unknown>;

const lose: Take = (member) => member.lose();
const pause: Take = async (member) => member.pause();

/** One of three is away while all services are well: nobody's primary changes for it, and the API takes changes all the while. */
async function goOnWithout(ground: FailoverGround, member: EtcdMember, take: Take): Promise<void> {
  const mend = await take(member);
  const untilMs = performance.now() + awayMs;
  try {
    for (let change = 1; change === 1 || performance.now() < untilMs; change += 1) {
      const body = { tags: { change: `${change}`, without: member.name } };
      const isTaken = async () => (await ground.platform.rest.patch(ground.path(""), body)).status === 200;
      await waitUntil(`a change is taken without ${member.name} of etcd`, isTaken, { withinMs: 30_000 });
      await sleep(500);
    }
  } finally {
    await mend();
  }
}

const without = (victims: Victims, name: string, take: Take): FailoverFault => ({
  name,
  expects: "none",
  isAlone: true,
  async run(ground, _, strikes) {
    const members = await victims(ground);
    strikes();
    for (const member of members) await goOnWithout(ground, member, take);
  },
});

/** The primary's machine stands still, and one of three is gone from this step until the failover is over. */
const lostAt = (step: string, name: string, victims: Victims): FailoverFault => ({
  name: `machine stands still, ${name} lost at ${step}`,
  expects: "failover",
  isAlone: true,
  async run(ground, { primary, newHost, operations }, strikes) {
    const [member] = await victims(ground);
    if (member === undefined) throw new Error("etcd has no such member");
    const mendMachine = ground.pause(ground.pidsOf(primary, "machine"));
    const atMs = strikes();
    let mend: () => Promise<void> = async () => {};
    try {
      await ground.reaches(step, operations);
      mend = await member.lose();
      await ground.takesWrites(newHost, atMs);
      await ground.ends(operations);
    } finally {
      await mend();
      mendMachine();
    }
  },
});

/** Faults of one of the three members of etcd, alone or while a primary is replaced. */
export const etcdFaults: readonly FailoverFault[] = [
  without(leader, "etcd's leader is lost for 10 s", lose),
  without(everyFollower, "each other member of etcd is lost for 10 s", lose),
  without(leader, "etcd's leader stands still for 10 s", pause),
  without(everyFollower, "each other member of etcd stands still for 10 s", pause),
  {
    name: "etcd's leader is moved again and again",
    expects: "none",
    isAlone: true,
    async run({ etcd }, _, strikes) {
      strikes();
      for (let moves = 0; moves < 10; moves += 1) {
        await etcd.moveLeader();
        await sleep(1_000);
      }
    },
  },
  lostAt("FencePrimary", "etcd's leader", leader),
  lostAt("PromoteReplica", "etcd's leader", leader),
  lostAt("FencePrimary", "another member of etcd", oneFollower),
  {
    name: "machine stands still, while a member of etcd is away",
    expects: "failover",
    isAlone: true,
    async run(ground, { primary, newHost, operations }, strikes) {
      const mend = await ground.random.pick(ground.etcd.all).lose();
      try {
        const mendMachine = ground.pause(ground.pidsOf(primary, "machine"));
        try {
          await ground.takesWrites(newHost, strikes());
          await ground.ends(operations);
        } finally {
          mendMachine();
        }
      } finally {
        await mend();
      }
    },
  },
  {
    name: "machine stands still, etcd's leader is moved at each step",
    expects: "failover",
    isAlone: true,
    async run(ground, { primary, newHost, operations }, strikes) {
      const mend = ground.pause(ground.pidsOf(primary, "machine"));
      const atMs = strikes();
      try {
        for (const step of ["FencePrimary", "PromoteReplica", "MoveDNS"]) {
          await ground.reaches(step, operations);
          await ground.etcd.moveLeader();
        }
        await ground.takesWrites(newHost, atMs);
        await ground.ends(operations);
      } finally {
        mend();
      }
    },
  },
];
