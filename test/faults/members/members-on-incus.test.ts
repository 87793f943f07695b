import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { incusMissing } from "@holdfast/testing/machines/incus-machines.ts";
import type { CutDirection } from "@holdfast/testing/network/network-cuts.ts";
import { type SlowNetwork, slowNetwork } from "@holdfast/testing/network/slow-network.ts";
import { crashesOf } from "@holdfast/testing/platform/platform-logs.ts";
import { flushOnWrite } from "../acknowledged-writer.ts";
import { type MemberFixture, startMemberFixture } from "./member-fixture.ts";
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
} from "./member-scenarios.ts";

const missing =
  process.env["HOLDFAST_TEST_MEMBERS"] === "1"
    ? await incusMissing()
    : "it takes a quarter of an hour: npm run faults -- --members";
const slow = missing === undefined ? await slowNetwork() : missing;
const longMs = 3_600_000;

const bodies = {
  async: { node_count: 2 },
  sync: { node_count: 2, replication_mode: "sync" },
  cache: { node_count: 2, database_type: "valkey", parameters: flushOnWrite },
} as const;
const ways: readonly CutDirection[] = ["both", "from", "to"];

describe.skipIf(missing !== undefined)(
  `services with replicas on machines of Incus${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    let fixture: MemberFixture;
    const opened = new Map<string, MemberService>();

    beforeAll(async () => {
      fixture = await startMemberFixture();
      for (const [name, body] of Object.entries(bodies)) opened.set(name, await fixture.open(name, body));
    }, longMs);
    afterAll(() => fixture?.close(), longMs);

    const scenario = (name: string, run: (fixture: MemberFixture, service: MemberService) => Promise<void>) => () => {
      const service = opened.get(name);
      if (service === undefined) throw new Error(`${name} was not opened`);
      return service.exclusively(() => run(fixture, service));
    };

    // Faults of one service do not affect the others.
    describe.concurrent.each(Object.keys(bodies))("%s", (name) => {
      for (const direction of ways) {
        const what = direction === "both" ? "both ways" : `${direction} its primary`;
        it(
          `continues while the network is cut ${what}, between it and controllers`,
          scenario(name, (all, service) => loseControllers(all, service, direction)),
          longMs,
        );
        it(
          `continues while the network is cut ${what}, between it and replicas`,
          scenario(name, (all, service) => loseReplicas(all, service, direction)),
          longMs,
        );
        it(
          `has another primary when the network is cut ${what}`,
          scenario(name, (all, service) => loseBoth(all, service, direction)),
          longMs,
        );
      }
      it.skipIf(typeof slow === "string")(
        `survives a slow network${typeof slow === "string" ? ` (skipped: ${slow})` : ""}`,
        scenario(name, (all, service) => slowDown(all, service, slow as SlowNetwork)),
        longMs,
      );
      it("has another primary when the disk of its primary hangs", scenario(name, hangDisk), longMs);
      it("continues while the disk of its replica is full", scenario(name, fillReplica), longMs);
      it("fails over, or continues, when its primary's machine ends", scenario(name, loseMachine), longMs);
      it("gets another node, which becomes its primary", scenario(name, changeNodes), longMs);
    });

    it(
      "recover by themselves after a power cut of all hosts",
      () => rebootHosts(fixture, [...opened.values()]),
      longMs,
    );

    it(
      "have lost no acknowledged row",
      async () => {
        for (const service of opened.values()) await service.settle();
        expect(crashesOf(fixture.platform.directory)).toEqual([]);
      },
      longMs,
    );

    it.each([4, 5])(
      "of %i nodes lose nothing where commits wait for one of their replicas",
      async (nodes) => {
        const many = await fixture.open(`nodes-${nodes}`, { node_count: nodes, replication_mode: "sync" });
        await loseBoth(fixture, many, "both");
        await hangDisk(fixture, many);
        await many.settle();
        await fixture.services.delete(many.id);
      },
      longMs,
    );
  },
);
