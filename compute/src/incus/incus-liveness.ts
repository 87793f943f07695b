import { request } from "undici";
import { dispatcherFor, originOf } from "./incus-address.ts";

/** Resolves with any answer of the daemon, also one that says that it is not ready yet. */
export async function requireAnswer(socket: string, signal: AbortSignal): Promise<void> {
  const address = { socket };
  const dispatcher = dispatcherFor(address);
  try {
    const { body } = await request(new URL("/1.0", originOf(address)), { dispatcher, signal });
    await body.dump();
  } finally {
    await dispatcher.destroy();
  }
}
