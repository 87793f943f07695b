import { connect, type Socket } from "node:net";
import type { ReachRule } from "@holdfast/compute/compute-provider.ts";
import { createMachineEdge, edgeConfig } from "@holdfast/compute/incus/machine-edge.ts";

/** Whom a host's edge admits where, and how often its rules are replaced by the same; run in the network that stands for the host. */
export interface EdgeWork {
  readonly block: string;
  readonly rules: readonly ReachRule[];
  /** Where somebody takes whatever is sent, and the rules allow it. */
  readonly address: string;
  readonly port: number;
  readonly times: number;
}

export interface EdgeFigures {
  /** Bytes of one session, most of them in a packet of their own. */
  readonly sent: number;
  /** Sessions that were begun besides. */
  readonly begun: number;
  /** Codes of errors of all of these. */
  readonly lost: readonly string[];
}

const { block, rules, address, port, times } = JSON.parse(process.argv[2] ?? "") as EdgeWork;
const signal = AbortSignal.timeout(120_000);
const edge = createMachineEdge(edgeConfig(block, [], []));
const lost: string[] = [];
let [sent, begun] = [0, 0];
let isOver = false;

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
  while (!isOver && socket?.destroyed === false) {
    for (let at = 0; at < 50 && !socket.writableNeedDrain; at += 1, sent += 1) socket.write("x");
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket?.destroy();
}

async function visit(): Promise<void> {
  for (; !isOver; begun += 1) (await dial())?.destroy();
}

await edge.apply(rules, signal);
const traffic = Promise.all([pour(), visit()]);
for (let time = 0; time < times; time += 1) await edge.apply(rules, signal);
isOver = true;
await traffic;
process.stdout.write(JSON.stringify({ sent, begun, lost } satisfies EdgeFigures));
