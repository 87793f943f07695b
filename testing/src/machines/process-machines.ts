import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { addressNetworkOf } from "@holdfast/compute/local/address-network.ts";
import { detectAbilities, type HostAbilities } from "@holdfast/compute/local/host-abilities.ts";
import { readStorageTiers } from "@holdfast/compute/local/storage-tiers.ts";
import { layoutOf } from "@holdfast/compute/local/machine-paths.ts";
import {
  createProcessProvider,
  type ProcessProvider,
  type ProcessProviderDeps,
} from "@holdfast/compute/process/process-provider.ts";
import { readRun } from "@holdfast/compute/process/machine-run.ts";
import { stopAllMachines } from "@holdfast/compute/process/stop-machine.ts";
import { createTestNodeImages, type TestNodeImages } from "./test-node-images.ts";

/** A first process of a machine with a child that has left its session, as engines do. */
const standIn = [
  "/bin/sh",
  "-c",
  `trap 'exit 0' TERM
cd "\${HOLDFAST_DATA_DIR:-/data}"
setsid sleep 1000 9>&- &
while :; do sleep 0.05; done`,
];

/** A process provider over a new directory, for one test file. Its machines run a stand-in for the keeper. */
export interface TestMachines {
  readonly directory: string;
  readonly layout: ReturnType<typeof layoutOf>;
  readonly provider: ProcessProvider;
  readonly images: TestNodeImages;
  /** Another provider over the same directory. */
  another(): ProcessProvider;
  /** Kills the first process of a running machine. */
  crash(id: string): Promise<void>;
  /** Stops and removes all machines. */
  close(): Promise<void>;
}

export const testCheckout = join(import.meta.dirname, "..", "..", "..");

interface TestMachinesOptions {
  /** An existing directory instead of a new one. */
  readonly directory?: string;
  readonly abilities?: HostAbilities;
  /** First two numbers of the machines' addresses; absent: `127.99`. */
  readonly loopbackBlock?: string;
  readonly clock?: Clock;
  readonly command?: ProcessProviderDeps["command"];
  readonly preparedDisks?: ProcessProviderDeps["preparedDisks"];
  readonly environment?: ProcessProviderDeps["environment"];
  /** Entries of HOLDFAST_STORAGE_TIERS. */
  readonly tiers?: readonly string[];
  readonly publicBlock?: string;
}

export async function startTestMachines(options: TestMachinesOptions = {}): Promise<TestMachines> {
  const directory = options.directory ?? mkdtempSync(join(tmpdir(), "holdfast-machines-"));
  const layout = layoutOf(directory);
  const images = createTestNodeImages();
  const deps: ProcessProviderDeps = {
    directory,
    loopbackBlock: options.loopbackBlock ?? "127.99",
    imagesDir: images.imagesDir,
    checkout: testCheckout,
    node: process.execPath,
    abilities: options.abilities ?? (await detectAbilities()),
    environment: options.environment ?? process.env,
    tiers: readStorageTiers(options.tiers ?? ["maxiops"]),
    clock: options.clock ?? systemClock,
    log: silentLog,
    command: options.command ?? (() => standIn),
    ...(options.preparedDisks && { preparedDisks: options.preparedDisks }),
    ...(options.publicBlock !== undefined && { publicBlock: addressNetworkOf(options.publicBlock) }),
  };
  const opened: ProcessProvider[] = [];
  const another = () => {
    const provider = createProcessProvider(deps);
    opened.push(provider);
    return provider;
  };
  return {
    directory,
    layout,
    provider: another(),
    images,
    another,
    async crash(id) {
      const pid = (await readRun(layout.machine(id).run))?.init?.pid;
      if (pid === undefined) throw new Error(`machine ${id} does not run`);
      process.kill(pid, "SIGKILL");
    },
    async close() {
      await Promise.all(opened.map((provider) => provider.close()));
      await stopAllMachines(directory, 0);
      rmSync(directory, { recursive: true, force: true });
      images.close();
    },
  };
}
