import { addressOf } from "@holdfast/testing/api/clients.ts";
import { type ChangingImages, createChangingImages } from "@holdfast/testing/machines/changing-images.ts";
import { type CloneTier, openCloneTier } from "@holdfast/testing/machines/clone-tier.ts";
import { type ForeignIncus, startForeignIncus } from "@holdfast/testing/machines/foreign-incus.ts";
import { firstProcessOf, openIncusOf } from "@holdfast/testing/machines/incus-machines.ts";
import { preparedDisks, type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { testPublicNetwork } from "@holdfast/testing/network/public-network.ts";
import { createReleaseDirectory, type ReleaseDirectory } from "@holdfast/testing/platform/release-directory.ts";
import { createServices, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";

/** One platform with a PostgreSQL, on an existing daemon with objects of another user. */
interface Started {
  readonly daemon: ForeignIncus;
  /** All objects of the daemon before the platform. */
  readonly before: Record<string, unknown>;
  readonly platform: Platform;
  readonly services: Services;
  readonly main: RunningService;
  readonly images: ChangingImages;
  /** Location of data disks: a file system with snapshots. */
  readonly tier: CloneTier;
}

export interface IncusUnderTest extends Started {
  /** Releases of the agent. */
  readonly code: ReleaseDirectory;
  /** First process of the service's machine, by this host's pid. */
  pidOf(running: RunningService): Promise<number>;
  /** Public and private address, by the names. */
  addressesOf(running: RunningService): Promise<[string, string]>;
  start(): Promise<void>;
  /** Removes only the platform, with its objects in the daemon. */
  removePlatform(): Promise<void>;
  remove(): Promise<void>;
}

export function createIncusUnderTest(): IncusUnderTest {
  const code = createReleaseDirectory();
  const parts: { -readonly [K in keyof Started]?: Started[K] } = {};
  function started<K extends keyof Started>(part: K): Started[K] {
    const found = parts[part];
    if (found === undefined) throw new Error(`${part} was not started`);
    return found as Started[K];
  }
  let removed = false;
  const fixture: IncusUnderTest = {
    code,
    get daemon() {
      return started("daemon");
    },
    get before() {
      return started("before");
    },
    get platform() {
      return started("platform");
    },
    get services() {
      return started("services");
    },
    get main() {
      return started("main");
    },
    get images() {
      return started("images");
    },
    get tier() {
      return started("tier");
    },
    async start() {
      parts.daemon = await startForeignIncus();
      parts.before = await fixture.daemon.everything();
      const network = await testPublicNetwork("routed");
      parts.images = createChangingImages({ looksOlder: false });
      parts.tier = await openCloneTier();
      code.put("0.3.0");
      parts.platform = await startPlatform({
        flags: ["--provider", "incus", "--incus-socket", fixture.daemon.socket, "--public-addresses", network],
        environment: {
          ...preparedDisks,
          HOLDFAST_SAMPLE_INTERVAL_MS: "1000",
          HOLDFAST_CACHE: fixture.images.cache,
          HOLDFAST_STORAGE_TIERS: `maxiops=${fixture.tier.directory}`,
          HOLDFAST_AGENT_CODE: code.directory,
          HOLDFAST_AGENT_UPGRADE: "on",
          HOLDFAST_AGENT_UPGRADE_SHARES: "100",
          HOLDFAST_AGENT_UPGRADE_SOAK_S: "1",
        },
      });
      parts.services = createServices(fixture.platform);
      // The very first machine waits for the image.
      const { id } = await fixture.services.create("main");
      await fixture.services.settled(id, "Running", 150_000);
      parts.main = await fixture.services.open(id);
    },
    async pidOf({ service }) {
      const incus = openIncusOf(fixture.platform);
      try {
        return await firstProcessOf(incus, service.nodes[0]?.id ?? "");
      } finally {
        await incus.close();
      }
    },
    addressesOf: ({ connection }) =>
      Promise.all([addressOf(fixture.platform, connection.host), addressOf(fixture.platform, connection.private_host)]),
    async removePlatform() {
      removed = true;
      await fixture.platform.remove();
    },
    async remove() {
      if (!removed) await parts.platform?.remove();
      await parts.daemon?.close();
      await parts.tier?.close();
      parts.images?.close();
      code.remove();
    },
  };
  return fixture;
}
