import type { Log } from "@holdfast/common/log.ts";
import { type LaunchRequest, launchMachine } from "./machine-launch.ts";
import { stopMachine } from "./stop-machine.ts";

/** Time limit of a program. */
const timeoutMs = 120_000;

/**
 * Runs a program in a separate machine, at idle CPU and I/O priority. Resolves with its exit status once no process of
 * the machine remains; throws when the signal fires, or after two minutes.
 */
export async function runMachineProgram(
  request: Pick<LaunchRequest, "paths" | "isolation" | "root" | "uid" | "command">,
  signal: AbortSignal,
  log: Log,
): Promise<number | null> {
  const { paths } = request;
  const { ended } = await launchMachine({
    ...request,
    grow: false,
    env: { PATH: "/usr/sbin:/usr/bin", LANG: "C.UTF-8", HOME: "/tmp" },
    awaited: true,
    prefix: ["chrt", "--idle", "0", "ionice", "--class", "3"],
  });
  const giveUp = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const stop = () => {
    stopMachine(paths, 0).catch((error: Error) => log.warn("program not stopped", { error: error.message }));
  };
  giveUp.addEventListener("abort", stop, { once: true });
  const status = await ended;
  giveUp.removeEventListener("abort", stop);
  await stopMachine(paths, 0);
  giveUp.throwIfAborted();
  return status;
}
