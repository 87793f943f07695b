import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import { ImageImpossible } from "@holdfast/image/image-impossible.ts";
import { ensureTree } from "@holdfast/image/build-tree.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { startTemporaryProcess } from "../platform/temporary-process.ts";
import type { ClientsOfHost } from "./network-cuts.ts";

const run = promisify(execFile);

/** Programs that slow a network down, in a separate file tree: nothing is installed on the host. */
export interface SlowNetwork {
  /** Delays all packets from and to the address, and drops some; resolves with a function that ends it. */
  slow(address: string, options: Slowness): Promise<() => Promise<void>>;
}

interface Slowness {
  readonly delayMs: number;
  readonly lossPct: number;
  /** Clients whose packets are not slowed down. */
  readonly spare?: ClientsOfHost;
}

const suite = "trixie";
const packages = ["iptables", "python3-minimal"];
const program = readFileSync(join(import.meta.dirname, "slow-network.py"), "utf8");
/** Hooks that see every packet of a machine once each way, whether the host or another machine is its peer. */
const hooks = [
  ["PREROUTING", "--source", "--destination", "--sports"],
  ["POSTROUTING", "--destination", "--source", "--dports"],
] as const;

/**
 * The programs, or the reason why this host cannot have them. Kernels may lack netem, and nftables' queues; iptables
 * has queues.
 */
export async function slowNetwork(): Promise<SlowNetwork | string> {
  const root = join(imagesDirectory(process.env), `slow-network-${suite}`);
  const iptables = (...args: string[]) => run("chroot", [root, "iptables-nft", "--wait", "--table", "mangle", ...args]);
  try {
    await ensureTree({ root, suite, packages }, { progress: (line) => console.error(line) });
    await change("--append", "192.0.2.1", queueOf("192.0.2.1"));
    await change("--delete", "192.0.2.1", queueOf("192.0.2.1"));
  } catch (error) {
    if (error instanceof ImageImpossible) return error.message;
    return `this kernel has no queues of packets: ${error instanceof Error ? error.message.trim().split("\n").at(-1) : error}`;
  }

  /** Without its program, packets pass the queue unchanged. */
  async function change(
    action: "--append" | "--delete",
    address: string,
    queue: number,
    spare?: ClientsOfHost,
  ): Promise<void> {
    for (const [hook, side, other, engines] of hooks) {
      const target = ["--jump", "NFQUEUE", "--queue-num", String(queue), "--queue-bypass"];
      if (spare !== undefined) {
        const ports = ["--protocol", "tcp", "--match", "multiport", engines, spare.ports.join(",")];
        await iptables(action, hook, side, address, other, spare.address, ...ports, "--jump", "RETURN");
      }
      await iptables(action, hook, side, address, ...target);
    }
  }

  return {
    async slow(address, { delayMs, lossPct, spare }) {
      const queue = queueOf(address);
      const argv = ["chroot", root, "python3", "-c", program, String(queue), String(delayMs), String(lossPct)];
      const handler = await startTemporaryProcess(dyingWithParent(argv), /^ready$/m);
      await change("--append", address, queue, spare);
      return async () => {
        await change("--delete", address, queue, spare);
        await handler.end("SIGKILL");
      };
    },
  };
}

/** Addresses of machines differ in their last three numbers; queue numbers have 16 bits. */
function queueOf(address: string): number {
  const [, block = 0, , last = 0] = address.split(".").map(Number);
  return (block << 8) | last;
}
