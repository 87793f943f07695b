import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { ComputeFailure } from "../compute-failure.ts";

const answersWithinMs = 5_000;

/**
 * Tells a guest that one of its disks has this size now, by QEMU's machine protocol (QMP): Incus does so for volumes of its
 * pools only. The file has that size already.
 */
export async function tellDiskSize(socketPath: string, device: string, sizeBytes: number): Promise<void> {
  const socket = connect(socketPath);
  socket.setTimeout(answersWithinMs, () => socket.destroy(new Error("the guest's monitor does not answer")));
  try {
    await once(socket, "connect");
    const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
    await nextLine(lines);
    await order(socket, lines, "qmp_capabilities", {});
    await order(socket, lines, "block_resize", { "node-name": `incus_${device}`, size: sizeBytes });
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new ComputeFailure(`The virtual machine was not told that its disk has grown: ${detail}`, { cause: error });
  } finally {
    socket.destroy();
  }
}

type Lines = AsyncIterator<string>;

/** Events come in between. */
async function order(socket: NodeJS.WritableStream, lines: Lines, execute: string, args: object): Promise<void> {
  socket.write(`${JSON.stringify({ execute, arguments: args })}\n`);
  for (;;) {
    const said = JSON.parse(await nextLine(lines)) as { return?: object; error?: { desc: string } };
    if (said.error !== undefined) throw new Error(said.error.desc);
    if (said.return !== undefined) return;
  }
}

async function nextLine(lines: Lines): Promise<string> {
  const next = await lines.next();
  if (next.done) throw new Error("the guest's monitor hung up");
  return next.value;
}
