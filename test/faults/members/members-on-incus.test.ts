import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { incusMissing } from "../../support/machines/incus-machines.ts";
import type { CutDirection } from "../../support/network/network-cuts.ts";
import { type SlowNetwork, slowNetwork } from "../../support/network/slow-network.ts";
import { crashesOf } from "../../support/platform/platform-logs.ts";
import { flushedAtOnce } from "../acknowledged-writer.ts";
import { type MemberGround, startMemberGround } from "./member-ground.ts";
import type { MemberService } from "./member-service.ts";
import {
  changeNodes,
  fillReplica,
  hangDisk,
  loseBoth,
  loseControllers,
  loseMachine,
  loseReplicas,
  rebootHosts,
  slowDown,
} from "./member-stories.ts";

const missing =
  process.env["HOLDFAST_TEST_MEMBERS"] === "1"
    ? await incusMissing()
    : "it takes a quarter of an hour: npm run faults -- --members";
const slow = missing === undefined ? await slowNetwork() : missing;
const longMs = 3_600_000;

const asked = {
  async: { node_count: 2 },
  sync: { node_count: 2, replication_mode: "sync" },
  cache: { node_count: 2, database_type: "valkey", parameters: flushedAtOnce },
} as const;
const ways: readonly CutDirection[] = ["both", "from", "to"];

describe.skipIf(missing !== undefined)(
  `services with replicas on machines of Incus${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    let ground: MemberGround;
    const opened = new Map<string, MemberService>();

    beforeAll(async () => {
      ground = await startMemberGround();
      for (const [name, body] of Object.entries(asked)) opened.set(name, await ground.open(name, body));
    }, longMs);
    afterAll(() => ground?.close(), longMs);

    const story = (name: string, tell: (ground: MemberGround, its: MemberService) => Promise<void>) => () => {
      const service = opened.get(name);
      if (service === undefined) throw new Error(`${name} was not opened`);
      return service.alone(() => tell(ground, service));
    };

    // What happens to one service is nothing to the others.
    describe.concurrent.each(Object.keys(asked))("%s", (name) => {
      for (const way of ways) {
        const what = way === "both" ? "both ways" : `${way} its primary`;
        it(
          `goes on while the network is cut ${what}, as seen by controllers`,
          story(name, (all, its) => loseControllers(all, its, way)),
          longMs,
        );
        it(
          `goes on while the network is cut ${what}, as seen by replicas`,
          story(name, (all, its) => loseReplicas(all, its, way)),
          longMs,
        );
        it(
          `has another primary when the network is cut ${what}`,
          story(name, (all, its) => loseBoth(all, its, way)),
          longMs,
        );
      }
      it.skipIf(typeof slow === "string")(
        `outlives a slow network${typeof slow === "string" ? ` (skipped: ${slow})` : ""}`,
        story(name, (all, its) => slowDown(all, its, slow as SlowNetwork)),
        longMs,
      );
      it("has another primary when the disk of its primary hangs", story(name, hangDisk), longMs);
      it("goes on while the disk of its replica is full", story(name, fillReplica), longMs);
      it("outlives the end of its primary's machine", story(name, loseMachine), longMs);
      it("gets another node, which becomes its primary", story(name, changeNodes), longMs);
    });

    it(
      "come back by themselves when all hosts were without power",
      () => rebootHosts(ground, [...opened.values()]),
      longMs,
    );

    it(
      "have lost nothing that was acknowledged",
      async () => {
        for (const service of opened.values()) await service.settle();
        expect(crashesOf(ground.platform.directory)).toEqual([]);
      },
      longMs,
    );

    it.each([4, 5])(
      "of %i nodes lose nothing where commits wait for one of their replicas",
      async (nodes) => {
        const many = await ground.open(`nodes-${nodes}`, { node_count: nodes, replication_mode: "sync" });
        await loseBoth(ground, many, "both");
        await hangDisk(ground, many);
        await many.settle();
        await ground.services.delete(many.id);
      },
      longMs,
    );
  },
);
