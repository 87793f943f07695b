import { stat } from "node:fs/promises";
import type { Instance } from "../engine-driver.ts";
import { engineSocket } from "./layout.ts";

/** Identifies the engine's run: it creates its socket at each start. */
export async function engineStartOf(instance: Instance): Promise<{ readonly ino: number; readonly mtimeMs: number }> {
  const { ino, mtimeMs } = await stat(engineSocket(instance));
  return { ino, mtimeMs };
}
