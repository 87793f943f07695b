import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { IncusClient } from "@holdfast/compute/incus/incus-client.ts";
import { instanceName } from "@holdfast/compute/incus/instance-config.ts";
import { layoutOf } from "@holdfast/compute/local/machine-paths.ts";
import { fillDisk } from "@holdfast/testing/machines/fill-disk.ts";
import { clientsOf, listeners, openIncusOf } from "@holdfast/testing/machines/incus-machines.ts";
import {
  type CutDirection,
  type Link,
  type NetworkCuts,
  openNetworkCuts,
} from "@holdfast/testing/network/network-cuts.ts";
import type { SlowNetwork } from "@holdfast/testing/network/slow-network.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type Services } from "@holdfast/testing/platform/services.ts";
import { setFrozen } from "../fault-fixture.ts";
import { type MemberFault, type MemberService, openMembers } from "./member-service.ts";

const run = promisify(execFile);

/**
 * Peers that the primary is cut off from. Clients still reach the primary, so that their writes would reveal a second
 * one.
 */
export type Peers = "controllers" | "replicas" | "all";

/** A platform with machines of Incus, as the fixture for faults. */
interface Fixture {
  readonly platform: Platform;
  readonly services: Services;
  readonly incus: IncusClient;
  /** Cuts that exempt clients on the host. */
  readonly cuts: NetworkCuts;
}

/** Services with replicas on a platform with machines of Incus, and faults of them. */
export interface MemberFixture extends Fixture {
  /** A service of several nodes with a continuous writer. */
  open(name: string, body: Record<string, unknown>): Promise<MemberService>;
  /** `way`: direction of the packets that are lost, from the primary or to it. */
  cutOff(far: Peers, direction: CutDirection): MemberFault;
  /** Slows the primary's network down, except for its clients. */
  slowDown(network: SlowNetwork, slowness: { readonly delayMs: number; readonly lossPct: number }): MemberFault;
  /** Writes to the primary's data disk hang; cached pages can be read. */
  readonly hangDisk: MemberFault;
  /** Fills the data disk of a replica. */
  readonly fillReplicaDisk: MemberFault;
  readonly freezeMachine: MemberFault;
  readonly stopMachine: MemberFault;
  note(figure: string): void;
  /** Ends all faults and writers, and prints the figures. The platform continues to run. */
  close(): Promise<void>;
}

export async function startMemberFixture(): Promise<MemberFixture> {
  const platform = await startPlatform({ flags: ["--provider", "incus"] });
  const incus = openIncusOf(platform);
  const cuts = await openNetworkCuts(listeners(platform).number, clientsOf(platform));
  const fixture = createMemberFixture({ platform, services: createServices(platform), incus, cuts });
  return {
    ...fixture,
    async close() {
      await fixture.close();
      await cuts.close();
      await incus.close();
      await platform.remove();
    },
  };
}

export function createMemberFixture({ platform, services, incus, cuts }: Fixture): MemberFixture {
  const clients = clientsOf(platform);
  const host = clients.address;
  const opened: MemberService[] = [];
  const frozen = new Set<string>();
  const figures: string[] = [];
  const note = (figure: string) => void figures.push(figure);

  const diskOf = (machineId: string) => layoutOf(platform.directory).machine(machineId).dataDirectory;

  async function thaw(disk: string): Promise<void> {
    if (frozen.delete(disk)) await run("fsfreeze", ["--unfreeze", disk]);
  }

  return {
    platform,
    services,
    incus,
    cuts,
    note,
    async open(name, body) {
      const service = await openMembers({ platform, services, note }, name, body);
      opened.push(service);
      return service;
    },
    cutOff: (far, direction) => async (roles) => {
      const { address } = roles.primary;
      const peers = [
        ...(far === "replicas" ? [] : [host]),
        ...(far === "controllers" ? [] : roles.replicas.map((replica) => replica.address)),
      ];
      const links = peers.flatMap((peer): Link[] => [
        ...(direction === "to" ? [] : [[address, peer] as const]),
        ...(direction === "from" ? [] : [[peer, address] as const]),
      ]);
      await cuts.cutLinks(links);
      return () => cuts.healLinks(links);
    },
    slowDown: (network, slowness) => (roles) => network.slow(roles.primary.address, { ...slowness, spare: clients }),
    async hangDisk({ primary }) {
      const disk = diskOf(primary.id);
      frozen.add(disk);
      await run("fsfreeze", ["--freeze", disk]);
      return () => thaw(disk);
    },
    async fillReplicaDisk({ replicas: [replica] }) {
      const disk = diskOf(replica?.id ?? "");
      await fillDisk(disk);
      return () => rm(join(disk, "filler"));
    },
    async freezeMachine({ primary }) {
      await setFrozen(incus, primary.id, true);
      return async () => {
        // The host may have stopped the machine, and started it again.
        const path = `/1.0/instances/${instanceName(primary.id)}`;
        const { status } = await incus.call<{ status: string }>("GET", path, AbortSignal.timeout(30_000));
        if (status === "Frozen") await setFrozen(incus, primary.id, false);
      };
    },
    async stopMachine({ primary }) {
      const path = `/1.0/instances/${instanceName(primary.id)}/state`;
      await incus.run("PUT", path, AbortSignal.timeout(60_000), { action: "stop", force: true });
      // The provider starts the machine again without a request.
      return () => undefined;
    },
    async close() {
      console.log(figures.join("\n"));
      for (const disk of frozen) await thaw(disk);
      await Promise.all(opened.map((service) => service.close()));
    },
  };
}
