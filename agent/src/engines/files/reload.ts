import type { Instance } from "../engine-driver.ts";
import { applyAllowLists, applyCertificate, applyWords } from "../front/front-commands.ts";
import { frontOf } from "./front.ts";

/** Applies changed settings, the allow-list first. The servers read their keys for each request. */
export async function reload(instance: Instance, signal: AbortSignal): Promise<void> {
  const front = frontOf(instance);
  await applyAllowLists(front, signal);
  await applyWords(front, signal);
  await applyCertificate(front, signal);
}
