import { connect, type Socket } from "node:net";
import type { PolicyRule } from "@holdfast/compute/compute-provider.ts";
import { createMachineEdge, edgeConfig } from "@holdfast/compute/incus/machine-edge.ts";

/**
 * Clients that a host's edge admits, and the number of times that its rules are replaced by equal ones; runs in the
 * network that stands for the host.
 */
export interface EdgeWork {
  readonly block: string;
  readonly rules: readonly PolicyRule[];
  /** Address of a receiver that the rules admit. */
  readonly address: string;
  readonly port: number;
  readonly times: number;
}

export interface EdgeFigures {
  /** Bytes of one session, mostly one byte in each packet. */
  readonly sent: number;
  /** Number of other sessions. */
  readonly started: number;
  /** Error codes of all sessions. */
  readonly lost: readonly string[];
}

const { block, rules, address, port, times } = JSON.parse(process.argv[2] ?? "") as EdgeWork;
const signal = AbortSignal.timeout(120_000);
const edge = createMachineEdge(edgeConfig(block, [], []));
const lost: string[] = [];
let [sent, started] = [0, 0];
let isFinished = false;

function dial(): Promise<Socket | undefined> {
  const socket = connect({ host: address, port, noDelay: true });
  return new Promise((resolve) => {
    socket.once("connect", () => resolve(socket));
    socket.once("error", (error: NodeJS.ErrnoException) => {
      lost.push(error.code ?? "");
      resolve(undefined);
    });
  });
}

async function pour(): Promise<void> {
  const socket = await dial();
  while (!isFinished && socket?.destroyed === false) {
    for (let at = 0; at < 50 && !socket.writableNeedDrain; at += 1, sent += 1) socket.write("x");
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket?.destroy();
}

async function visit(): Promise<void> {
  for (; !isFinished; started += 1) (await dial())?.destroy();
}

await edge.apply(rules, signal);
const traffic = Promise.all([pour(), visit()]);
for (let time = 0; time < times; time += 1) await edge.apply(rules, signal);
isFinished = true;
await traffic;
process.stdout.write(JSON.stringify({ sent, started, lost } satisfies EdgeFigures));
