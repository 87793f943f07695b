import { readFile } from "node:fs/promises";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { KernelSettings } from "../kernel-settings.ts";
import { createHistory, type History } from "./history.ts";

/** The history that the configuration names; it is brought up as soon as its database answers. */
export async function openHistory(
  settings: Pick<KernelSettings, "historyUrl" | "historyPasswordFile" | "historyCa">,
  clock: Clock,
  log: Log,
): Promise<History> {
  const { historyUrl: url, historyPasswordFile: passwordFile, historyCa } = settings;
  const tls = historyCa === "" ? {} : { tls: { ca: await readFile(historyCa, "utf8") } };
  return createHistory({ url, passwordFile, ...tls, log, now: clock.now });
}
