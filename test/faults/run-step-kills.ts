// Kills at each step of an image's replacement and of an agent's upgrade:
// npm run faults -- --middle [--seed N] [--only images|damaging|agents] [--engine postgresql|valkey] [--rounds N]
import { parseArgs } from "node:util";
import { MaintenanceService } from "@holdfast/proto/holdfast/admin/v1/maintenance_pb.ts";
import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { AgentRolloutService } from "@holdfast/proto/holdfast/admin/v1/agent_rollout_pb.ts";
import { createChangingImages } from "@holdfast/testing/machines/changing-images.ts";
import { cloneTierMissing, openCloneTier } from "@holdfast/testing/machines/clone-tier.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { crashesOf, lastLogLines } from "@holdfast/testing/platform/platform-logs.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createRandom } from "@holdfast/testing/random.ts";
import { createReleaseDirectory } from "@holdfast/testing/platform/release-directory.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { flushOnWrite, writeRows, writeValues } from "./acknowledged-writer.ts";
import { agentVictims, killAtHandOver } from "./agent-kills.ts";
import { damagingSteps, type ImageKillFixture, imageSteps, imageVictims, killAtImageStep } from "./image-kills.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    only: { type: "string" },
    engine: { type: "string" },
    rounds: { type: "string", default: "4" },
  },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
const random = createRandom(seed);
const startedAt = Date.now();
const log = (line: string) => console.log(`${((Date.now() - startedAt) / 1_000).toFixed(1).padStart(8)}  ${line}`);
log(`seed ${seed}`);

const images = createChangingImages({ looksOlder: false });
const releases = createReleaseDirectory();
const environment: Record<string, string> = {
  HOLDFAST_CACHE: images.cache,
  HOLDFAST_AGENT_CODE: releases.directory,
  HOLDFAST_AGENT_UPGRADE_SHARES: "100",
  HOLDFAST_AGENT_UPGRADE_SOAK_S: "1",
};
releases.put("1.0.0");
const tier = (await cloneTierMissing()) === undefined ? await openCloneTier() : undefined;
if (tier === undefined) log("no file system here shares blocks between files: there are no snapshots");
else environment["HOLDFAST_STORAGE_TIERS"] = `maxiops=${tier.directory},standard`;
const platform = await startPlatform({ environment });
const writers = { postgresql: writeRows, valkey: writeValues };
try {
  const services = createServices(platform);
  const both = [images.first, images.valid] as const;
  const isMeant = (part: string) => values.only === undefined || values.only === part;
  const isUnder = (engine: keyof typeof writers) => values.engine === undefined || values.engine === engine;

  /**
   * Runs `work` with the only service of the platform, so that all killed machine processes belong to it. Throws if an
   * acknowledged write is lost.
   */
  async function withService(engine: keyof typeof writers, work: (fixture: ImageKillFixture) => Promise<void>) {
    if (!isUnder(engine)) return;
    const stop = new AbortController();
    // A new service has the newest image, and must be healthy.
    await images.choose(images.first);
    const isNewest = async () =>
      (await asOperator(platform, MaintenanceService, (rpcs) => rpcs.listImages({}))).images.some(
        ({ id, newestOf }) => id === images.first && newestOf.length > 0,
      );
    await waitUntil("new machines have the first image", isNewest);
    const service = await services.createRunning(`kept-${engine}`, {
      database_type: engine,
      ...(engine === "valkey" && { parameters: flushOnWrite }),
    });
    const writer = await writers[engine](platform, service, stop.signal);
    try {
      await work({ platform, services, service, images: { both, choose: images.choose }, writer });
    } finally {
      stop.abort();
      await writer.done;
    }
    const missing = await writer.missing();
    if (missing.length > 0)
      throw new Error(`${missing.length} acknowledged writes are lost, such as ${missing.slice(0, 10)}`);
    log(`${engine}: all ${writer.acknowledged} writes are there`);
    await services.delete(service.service.id);
  }

  async function damage(fixture: ImageKillFixture): Promise<void> {
    const damaged = { ...fixture, images: { ...fixture.images, damaging: images.damaging } };
    for (const step of damagingSteps)
      for (const victim of imageVictims) log(await killAtImageStep(damaged, { step, victim }));
  }

  async function exchangeAgents(fixture: ImageKillFixture): Promise<void> {
    await platform.killControlPlane();
    environment["HOLDFAST_AGENT_UPGRADE"] = "on";
    await platform.start();
    const completed = async () =>
      (await asOperator(platform, AgentRolloutService, (rpcs) => rpcs.getAgentRollout({}))).state === "Completed";
    await waitUntil("the first release is everywhere", completed, {
      describe: () => lastLogLines(platform.directory, 20),
    });
    // A starting controller offers the release that it finds.
    const offer = async (name: string) => {
      const digest = releases.put(name);
      for (const pid of platform.processes().controllers) killImmediately(pid);
      return digest;
    };
    let release = 1;
    for (let round = 0; round < Number(values.rounds); round += 1)
      for (const victim of agentVictims) {
        release += 1;
        const kill = { victim, afterMs: random.between(0, 1_500) };
        log(await killAtHandOver({ ...fixture, offer }, `${release}.0.0`, kill));
      }
  }

  if (tier !== undefined && isMeant("damaging")) await withService("valkey", damage);
  await withService("postgresql", async (fixture) => {
    if (isMeant("images"))
      for (const step of imageSteps)
        for (const victim of imageVictims) log(await killAtImageStep(fixture, { step, victim }));
    if (tier !== undefined && isMeant("damaging")) await damage(fixture);
    if (isMeant("agents")) await exchangeAgents(fixture);
  });

  const crashes = crashesOf(platform.directory);
  if (crashes.length > 0) throw new Error(`${crashes.length} crashes, such as:\n${crashes[0]}`);
  const { orphans } = await asOperator(platform, FleetService, (fleet) => fleet.sweepOrphans({ dryRun: true }));
  if (orphans.length > 0) throw new Error(`${orphans.length} orphans remain`);
  const remaining = async () => ((await tier?.disks()) ?? []).filter((name) => /snapshot|draft/.test(name));
  await waitUntil("no snapshot remains", async () => (await remaining()).length === 0);
  log("all converged");
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  console.error(lastLogLines(platform.directory, 60));
  console.error(`failed; again with: npm run faults -- --middle --seed ${seed}`);
  process.exitCode = 1;
} finally {
  await platform.remove();
  await tier?.close();
  images.close();
  releases.remove();
}
