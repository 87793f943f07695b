import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { ComputeFailure } from "../compute-failure.ts";

const responseTimeoutMs = 5_000;

/**
 * Announces the new size of a disk to a running guest by QEMU's machine protocol (QMP, `block_resize`); Incus does so
 * only for volumes of its pools. The file has that size already.
 */
export async function resizeGuestDisk(socketPath: string, device: string, sizeBytes: number): Promise<void> {
  const socket = connect(socketPath);
  socket.setTimeout(responseTimeoutMs, () => socket.destroy(new Error("the guest's monitor does not respond")));
  try {
    await once(socket, "connect");
    const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
    await nextLine(lines);
    await execute(socket, lines, "qmp_capabilities", {});
    await execute(socket, lines, "block_resize", { "node-name": `incus_${device}`, size: sizeBytes });
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new ComputeFailure(`The virtual machine did not adopt the size of its grown disk: ${detail}`, {
      cause: error,
    });
  } finally {
    socket.destroy();
  }
}

type Lines = AsyncIterator<string>;

/** Sends a command and waits for its result; events in between are skipped. */
async function execute(socket: NodeJS.WritableStream, lines: Lines, execute: string, args: object): Promise<void> {
  socket.write(`${JSON.stringify({ execute, arguments: args })}\n`);
  for (;;) {
    const reply = JSON.parse(await nextLine(lines)) as { return?: object; error?: { desc: string } };
    if (reply.error !== undefined) throw new Error(reply.error.desc);
    if (reply.return !== undefined) return;
  }
}

async function nextLine(lines: Lines): Promise<string> {
  const next = await lines.next();
  if (next.done) throw new Error("the guest's monitor closed the connection");
  return next.value;
}
